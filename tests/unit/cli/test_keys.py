"""Bytes of a terminal as keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.cli.keys import decode


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"q", ["q"]),
        (b"\x1b[A\x1bOB", ["up", "down"]),
        (b"\x1b", ["escape"]),
        (b"\x1bq", ["escape", "q"]),
        (b"\x1b[5~\x1b[6~", ["page up", "page down"]),
        (b"a\r\x7f b", ["a", "enter", "backspace", " ", "b"]),
        (b"\x1b[200~x", ["x"]),
        (b"\x1b[1;5A", []),
        (b"\x04\x00", []),
        ("ü漢".encode(), ["ü", "漢"]),
        (b"\xff\x0c", ["redraw"]),
        (b"\x1b[", []),
    ],
)
def test_keys_have_names(data: bytes, keys: list[str]) -> None:
    assert decode(data) == keys


@given(st.binary(max_size=64))
def test_any_bytes_are_keys_without_control_characters(data: bytes) -> None:
    assert all(key.isprintable() for key in decode(data))
