"""What the tools answer, whole and cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.symbols.source_lines import SourceLine, parse_lines

_TEXT = """\
0x000000000000114b
inner
/src/a.c:4 (discriminator 3)
outer
/src/dir: with a colon/a.c:8
0x0
??
??:0
0x2000
a
??:0
0x1150
last
/src/b.c:12
"""
_ASKED = (0x114B, 0, 0x2000, 0x1150)
_ANSWERS = {
    0x114B: (
        SourceLine("inner", "/src/a.c", 4),
        SourceLine("outer", "/src/dir: with a colon/a.c", 8),
    ),
    0x1150: (SourceLine("last", "/src/b.c", 12),),
}


def test_functions_and_places_innermost_first():
    assert parse_lines(_TEXT, _ASKED) == _ANSWERS


@pytest.mark.parametrize("size", range(0, len(_TEXT) - 1, 3))
def test_of_an_output_that_is_cut_short_what_is_complete_counts(size):
    found = parse_lines(_TEXT[:size], _ASKED)
    assert all(_ANSWERS[address] == lines for address, lines in found.items())
    assert 0x1150 not in found


@given(st.text("0x1?:\n a", max_size=60), st.lists(st.integers(0, 20), max_size=4))
def test_any_text_has_lines_of_asked_addresses_only(text, addresses):
    for address, lines in parse_lines(text, addresses).items():
        assert address in addresses
        assert any(line.file for line in lines)


@pytest.mark.parametrize("number", ["9" * 5000, "9" * 12, "\u0663", "-1", ""])
def test_a_line_that_no_file_has_is_not_known(number):
    """A file may be called "x", a newline, and whatever a process likes to have parsed."""
    assert parse_lines(f"0x10\nf\n/a.c:{number}\n", [0x10]) == {0x10: (SourceLine("f", "/a.c", 0),)}
