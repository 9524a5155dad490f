"""Reduces a filter to the form that is compiled: names looked up, synonyms gone, ranges sorted.

A `Filter` is parsed text; a `Condition` is the form that becomes code, in the kernel or here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, Protocol

from purebpf.abi.perf import perf_event_sample_format
from purebpf.filter.fields import FIELDS, Field, Kind
from purebpf.filter.syntax import (
    And,
    Comparison,
    Expression,
    Filter,
    FilterError,
    Membership,
    Not,
    Or,
    TextSpan,
    Value,
)
from purebpf.tuples import NamedTuple

__all__ = [
    "All",
    "Any",
    "CommIn",
    "Compare",
    "Condition",
    "NameLookup",
    "NoNames",
    "Opposite",
    "SymbolRange",
    "Term",
    "Under",
    "Within",
    "resolve",
]


class Compare(NamedTuple):
    """A field compared with a number: `operator` is one of == != > >= < <= &."""

    field: Field
    operator: str
    value: int


class Within(NamedTuple):
    """A field in one of some ranges, both ends included; sorted, without overlaps."""

    field: Field
    ranges: tuple[tuple[int, int], ...]


class CommIn(NamedTuple):
    """The thread has one of these names."""

    names: tuple[bytes, ...]


class Under(NamedTuple):
    """The ancestor, at `level` below the root, of the thread's cgroup is the one of this id."""

    level: int
    cgroup: int


class Opposite(NamedTuple):
    """Not that."""

    part: Condition


class All(NamedTuple):
    """Every part."""

    parts: tuple[Condition, ...]


class Any(NamedTuple):
    """At least one part."""

    parts: tuple[Condition, ...]


Condition = Compare | Within | CommIn | Under | Opposite | All | Any


class Term(NamedTuple):
    """A part of the filter that alone can reject a sample: its text, and its meaning."""

    text: str
    condition: Condition


class SymbolRange(NamedTuple):
    """The range of a function: from `low` to `high`, both included, in process `pid` (0:
    kernel).
    """

    pid: int
    low: int
    high: int


class NameLookup(Protocol):
    """Looks up names for a filter; raises LookupError, with a sentence, for unknown ones."""

    def user(self, name: str) -> int:
        """A user's number."""

    def group(self, name: str) -> int:
        """A group's number."""

    def cgroup(self, path: str) -> tuple[int, int]:
        """A cgroup's id, and how many levels it is below the root of the hierarchy."""

    def symbol(self, name: str) -> Iterable[SymbolRange]:
        """The places of a function, at least one."""


class NoNames:
    """Has no names: for filters that must not depend on a machine."""

    def user(self, name: str) -> int:
        """Raises LookupError."""
        self._unknown("user", name)

    def group(self, name: str) -> int:
        """Raises LookupError."""
        self._unknown("group", name)

    def cgroup(self, path: str) -> tuple[int, int]:
        """Raises LookupError."""
        self._unknown("cgroup", path)

    def symbol(self, name: str) -> Iterable[SymbolRange]:
        """Raises LookupError."""
        self._unknown("function", name)

    def _unknown(self, kind: str, name: str) -> NoReturn:
        raise LookupError(f"unknown {kind} {name!r}")


def resolve(filter_: Filter, sample_type: int, names: NameLookup) -> tuple[Term, ...]:
    """Return the terms of a filter, with names looked up; a sample must fulfil all of them.

    `sample_type` decides the meaning of `weight`: the whole word, or its first part.

    Raises:
        FilterError: an unknown name; shows where it is.
    """
    resolver = _Resolver(filter_.text, sample_type, names)
    parts = _conjuncts(filter_.root)
    return tuple(Term(str(part), resolver.condition(part)) for part in parts)


def _conjuncts(root: Expression) -> tuple[Expression, ...]:
    if not isinstance(root, And):
        return (root,)
    return tuple(conjunct for part in root.parts for conjunct in _conjuncts(part))


class _Resolver:
    def __init__(self, text: str, sample_type: int, names: NameLookup) -> None:
        self._text = text
        self._sample_type = sample_type
        self._names = names

    def condition(self, root: Expression) -> Condition:
        if isinstance(root, And):
            return All(tuple(map(self.condition, root.parts)))
        if isinstance(root, Or):
            return Any(tuple(map(self.condition, root.parts)))
        if isinstance(root, Not):
            return Opposite(self.condition(root.part))
        if isinstance(root, Comparison):
            return self._comparison(root)
        return self._membership(root)

    def _comparison(self, root: Comparison) -> Condition:
        field = self._field(root.field)
        if field.kind in (Kind.COMM, Kind.SYMBOL):
            equal = self._lower_name(field, [root.value])
            return Opposite(equal) if root.operator == "!=" else equal
        if root.operator == "under":
            cgroup, level = self._cgroup(root.value)
            return Under(level, cgroup)
        return Compare(field, root.operator, self._number(field, root.value))

    def _membership(self, root: Membership) -> Condition:
        field = self._field(root.field)
        if field.kind in (Kind.COMM, Kind.SYMBOL):
            return self._lower_name(field, [bounds.low for bounds in root.ranges])
        ranges = []
        for values in root.ranges:
            low = self._number(field, values.low)
            high = self._number(field, values.high) if values.high else low
            if low > high:
                place = TextSpan(values.low.place.start, values.low.place.end)
                problem = f"the range ends before it begins: {low} is above {high}"
                raise FilterError(problem, self._text, place)
            ranges.append((low, high))
        return Within(field, _merge_ranges(ranges))

    def _field(self, name: str) -> Field:
        whole = perf_event_sample_format.PERF_SAMPLE_WEIGHT
        if name == "weight" and not self._sample_type & whole:
            return FIELDS["weight1"]
        return FIELDS[name]

    def _lower_name(self, field: Field, values: list[Value]) -> Condition:
        if field.kind is Kind.COMM:
            names = (value.word.encode(errors="surrogateescape") for value in values)
            return CommIn(tuple(dict.fromkeys(names)))
        return _in_ranges(condition for value in values for condition in self._symbol(value))

    def _number(self, field: Field, value: Value) -> int:
        if value.number is not None:
            return value.number
        if field.kind is Kind.CGROUP:
            return self._cgroup(value)[0]
        look_up = self._names.user if field.kind is Kind.USER else self._names.group
        try:
            return look_up(value.word)
        except LookupError as error:
            raise self._unknown(value, error) from None

    def _cgroup(self, value: Value) -> tuple[int, int]:
        try:
            return self._names.cgroup(value.word)
        except LookupError as error:
            raise self._unknown(value, error) from None

    def _symbol(self, value: Value) -> tuple[SymbolRange, ...]:
        try:
            return tuple(self._names.symbol(value.word))
        except LookupError as error:
            raise self._unknown(value, error) from None

    def _unknown(self, value: Value, error: LookupError) -> FilterError:
        return FilterError(str(error.args[0]), self._text, value.place)


def _in_ranges(ranges: Iterable[SymbolRange]) -> Condition:
    """Return a condition: the ip is in one of the ranges; in a process's ranges only while it
    runs.
    """
    by_process: dict[int, list[tuple[int, int]]] = {}
    for pid, low, high in ranges:
        by_process.setdefault(pid, []).append((low, high))
    conditions: list[Condition] = []
    for pid, places in by_process.items():
        within = Within(FIELDS["ip"], _merge_ranges(places))
        conditions.append(All((Compare(FIELDS["pid"], "==", pid), within)) if pid else within)
    return conditions[0] if len(conditions) == 1 else Any(tuple(conditions))


def _merge_ranges(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)
