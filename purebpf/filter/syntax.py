"""A filter as it was written: a tree; its `str()` is a filter of the same meaning.

Places are offsets in the text; they are not part of a tree's identity.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from purebpf.errors import PurebpfError
from purebpf.tuples import NamedTuple

__all__ = [
    "And",
    "Comparison",
    "Expression",
    "Filter",
    "FilterError",
    "Membership",
    "Not",
    "Or",
    "Range",
    "TextSpan",
    "Value",
]


class TextSpan(NamedTuple):
    """The range of a term's characters in the text."""

    start: int
    end: int


class FilterError(PurebpfError, ValueError):
    """A filter that cannot be used; its text shows the place.

    Attributes:
        problem: the fault, in a sentence.
        text: the filter.
        column: where, counted from 1.
        exit_status: the exit status of a command with a wrong filter: a usage error.
    """

    exit_status = 2

    def __init__(self, problem: str, text: str, place: TextSpan) -> None:
        self.problem = problem
        self.text = text
        self.column = place.start + 1
        # One line, in which a caret can point: a tab or a line break counts as a blank.
        line = "".join(char if char.isprintable() else " " for char in text)
        caret = "^" * max(min(place.end, len(text)) - place.start, 1)
        start = max(place.start - _BEFORE, 0)
        shown = line[start : start + _SHOWN]
        mark = " " * (place.start - start) + caret[: _SHOWN - (place.start - start)]
        super().__init__(f"{problem}\n    {shown}\n    {mark}")


_BEFORE = 50
_SHOWN = 72
"""How much of a long filter an error shows: a piece of 72 characters around the place."""

_NOWHERE = TextSpan(0, 0)


@dataclass(frozen=True, slots=True)
class Value:
    """A value that a field is compared with: a number, a word for a number, or a name."""

    word: str
    number: int | None = None
    place: TextSpan = dataclasses.field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return self.word if self.number is not None or _is_bare(self.word) else _quote(self.word)


@dataclass(frozen=True, slots=True)
class Range:
    """From `low` to `high`, both included; a single value when there is no `high`."""

    low: Value
    high: Value | None = None

    def __str__(self) -> str:
        return str(self.low) if self.high is None else f"{self.low}..{self.high}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """`cpu > 2`, `mem_op & load`, `cgroup under /a`: `operator` is as it was written."""

    field: str
    operator: str
    value: Value
    place: TextSpan = dataclasses.field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.field} {self.operator} {self.value}"


@dataclass(frozen=True, slots=True)
class Membership:
    """`pid in {1, 7..9}`, `ip in 0x1000..0x1fff`."""

    field: str
    ranges: tuple[Range, ...]
    place: TextSpan = dataclasses.field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        if len(self.ranges) == 1 and self.ranges[0].high is not None:
            return f"{self.field} in {self.ranges[0]}"
        return f"{self.field} in {{{', '.join(map(str, self.ranges))}}}"


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    part: Expression

    def __str__(self) -> str:
        return f"!({self.part})" if isinstance(self.part, And | Or) else f"!{self.part}"


@dataclass(frozen=True, slots=True)
class And:
    """Every part. Written with commas: the same as `&&`, and perf understands it."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return ", ".join(f"({part})" if isinstance(part, And) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or:
    """Any part."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return " || ".join(
            f"({part})" if isinstance(part, And | Or) else str(part) for part in self.parts
        )


Expression = Comparison | Membership | Not | And | Or


class Filter(NamedTuple):
    """A filter: its text, and the tree that was parsed. `str()` is the tree's."""

    text: str
    root: Expression

    def __str__(self) -> str:
        return str(self.root)


SPECIAL = ' \t\r\n\v\f,(){}|&!"<>='
"""What ends a word; a word with one of these is written in double quotes."""


def _is_bare(word: str) -> bool:
    return bool(word) and not any(char in SPECIAL for char in word) and ".." not in word


def _quote(word: str) -> str:
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
