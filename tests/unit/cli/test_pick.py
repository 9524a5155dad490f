"""Options become the fields of the same names."""

from __future__ import annotations

import argparse
from typing import NamedTuple

import pytest

from purebpf.cli import parser


class Wanted(NamedTuple):
    """Two fields."""

    pids: tuple[int, ...] = ()
    rows: int = 7


def test_a_field_without_an_option_is_an_error() -> None:
    parsed = argparse.Namespace(pids=(3,), row=5)
    with pytest.raises(TypeError, match="fields without an option: rows"):
        parser.pick(Wanted, parsed)
    assert parser.pick(Wanted, parsed, is_partial=True) == Wanted((3,), 7)
