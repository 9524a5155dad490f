"""The stack of a function before each of its instructions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.symbols.stack_depth import depth_at


@pytest.mark.parametrize(
    ("code", "depth"),
    [
        ("", 0),
        ("41 54 55 53", 24),
        ("41 54 55 53 5b 5d 41 5c", 0),
        ("68 00 00 00 00 6a 01 9c ff 30", 32),
        ("9d 8f 00", -16),
        ("48 81 ec 00 01 00 00", 256),
        ("48 83 c4 80", 128),
        ("48 83 e4 f0", None),  # and
        ("66 50", None),
        ("c8 10 00 00", None),
        ("48 89 e5 c9", None),
        ("55 48 89 e5 41 54 c9", 0),
        ("f3 0f 1e fa 55 48 89 e5 c9", 0),
        ("48 89 c4", None),  # mov %rax, %rsp
        ("48 8b 27", None),
        ("48 29 c4", None),  # sub %rax, %rsp
        ("5c", None),  # pop %rsp
        ("48 89 04 24", 0),  # mov %rax, (%rsp)
        ("85 ff 74 01 90", 0),
        ("85 ff 74 01 53", None),
        ("eb 01 53", 0),
    ],
)
def test_the_depth_behind_some_code(code: str, depth: int | None) -> None:
    before = bytes.fromhex(code)
    assert depth_at(before + b"\xc3", len(before)) == depth


@pytest.mark.parametrize("code", ["c3 c3", "f4 c3", "0f 0b c3", "e9 fb ff ff ff c3"])
def test_code_that_nothing_leads_to(code: str) -> None:
    data = bytes.fromhex(code)
    assert depth_at(data, len(data) - 1) is None


@given(st.binary(max_size=64), st.integers(0, 64))
def test_any_code(code: bytes, place: int) -> None:
    depth = depth_at(code, place)
    assert depth is None or isinstance(depth, int)
