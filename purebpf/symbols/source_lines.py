"""Parses the output of llvm-symbolizer and addr2line (GNU style).

An address, then a function and its `file:line` for each function inlined there, the innermost
first, and at last for the function that has the code. `??` means unknown. Printed by
`addr2line -a -f -i`, and by `llvm-symbolizer --output-style=GNU -a -f -i`.
"""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.symbols.longest_name import shorten
from purebpf.tuples import NamedTuple

__all__ = ["SourceLine", "parse_lines"]

_UNKNOWN = "??"
_MOST_DIGITS = 10
"""Of a line: DWARF has 32 bits for it mostly; int() refuses 4,301 digits."""


class SourceLine(NamedTuple):
    """A function, mangled, and a place in its source; "" and 0 for unknown parts."""

    function: str
    file: str
    line: int


def parse_lines(text: str, addresses: Iterable[int]) -> dict[int, tuple[SourceLine, ...]]:
    """The answers by address, innermost function first; without those that say nothing.

    Args:
        text: the output, which may be cut short anywhere.
        addresses: the requested addresses, in that order.
    """
    rows = text.split("\n")[:-1]
    lines_by_address: dict[int, tuple[SourceLine, ...]] = {}
    asked = iter(addresses)
    following = next(asked, None)
    current: int | None = None
    answer: list[SourceLine] = []
    at = 0
    while at < len(rows):
        if following is not None and _number(rows[at]) == following:
            _add(lines_by_address, current, answer)
            current, following, answer = following, next(asked, None), []
            at += 1
        else:
            if at + 1 < len(rows):
                answer.append(_line(rows[at], rows[at + 1]))
            at += 2
    if following is None:  # else the last answer may lack its end
        _add(lines_by_address, current, answer)
    return lines_by_address


def _add(
    lines_by_address: dict[int, tuple[SourceLine, ...]],
    address: int | None,
    answer: list[SourceLine],
) -> None:
    if address is not None and any(line.file for line in answer):
        lines_by_address[address] = tuple(answer)


def _number(text: str) -> int | None:
    try:
        return int(text, 16) if text.startswith("0x") else None
    except ValueError:
        return None


def _line(function: str, place: str) -> SourceLine:
    """`place` is `file:line`, perhaps with ` (discriminator 3)` behind it."""
    file, _, rest = place.rpartition(":")
    number = rest.partition(" ")[0]
    is_number = number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
    line = int(number) if is_number else 0
    if file == _UNKNOWN:
        file = ""
    function = "" if function == _UNKNOWN else shorten(function)
    return SourceLine(function, shorten(file), line if file else 0)
