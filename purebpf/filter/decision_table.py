"""A filter as the table that bpf_src/filter_pinned.bpf.c interprets.

A decision graph: each entry compares a field with a number and names the entry that comes next,
always one farther down, or the verdict.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from purebpf.enums import IntEnum
from purebpf.errors import NotSupportedError
from purebpf.filter.fields import Field
from purebpf.filter.lowering import All, Any, CommIn, Compare, Condition, Opposite, Term, Under
from purebpf.tuples import NamedTuple

__all__ = [
    "ENTRIES",
    "VERDICT",
    "Entry",
    "FilterField",
    "FilterOperator",
    "listing",
    "pack_table",
    "table",
]

ENTRIES = 128
VERDICT = 0x8000
_KEEP = VERDICT
_MASK = (1 << 64) - 1
_ENTRY = struct.Struct("=QQBBBBHH")


class FilterField(IntEnum):
    """enum filter_field."""

    IP = 0
    TID = 1
    PID = 2
    TIME = 3
    ADDR = 4
    ID = 5
    CPU = 6
    PERIOD = 7
    WEIGHT = 8
    DATA_SRC = 9
    SNOOP = 10
    TXN = 11
    PHYS_ADDR = 12
    CGROUP = 13
    DATA_PGSZ = 14
    CODE_PGSZ = 15
    UID = 16
    GID = 17
    COMM_HEAD = 18
    COMM_TAIL = 19
    ANCESTOR = 20


class FilterOperator(IntEnum):
    """enum filter_operator."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5
    AND = 6


_OPERATORS: Mapping[str, FilterOperator] = {
    "==": FilterOperator.EQ,
    "!=": FilterOperator.NE,
    ">": FilterOperator.GT,
    ">=": FilterOperator.GE,
    "<": FilterOperator.LT,
    "<=": FilterOperator.LE,
    "&": FilterOperator.AND,
}

_WORDS: Mapping[str, FilterField] = {
    "ip": FilterField.IP,
    "tid_entry.tid": FilterField.TID,
    "tid_entry.pid": FilterField.PID,
    "time": FilterField.TIME,
    "addr": FilterField.ADDR,
    "id": FilterField.ID,
    "cpu_entry.cpu": FilterField.CPU,
    "period": FilterField.PERIOD,
    "weight.full": FilterField.WEIGHT,
    "data_src.val": FilterField.DATA_SRC,
    "txn": FilterField.TXN,
    "phys_addr": FilterField.PHYS_ADDR,
    "cgroup": FilterField.CGROUP,
    "data_page_size": FilterField.DATA_PGSZ,
    "code_page_size": FilterField.CODE_PGSZ,
}


class Entry(NamedTuple):
    """struct entry: `(field >> shift & mask) OPERATOR value` leads to `yes` or `no`."""

    value: int
    mask: int
    field: FilterField
    operator: FilterOperator
    shift: int
    level: int
    yes: int
    no: int


def table(terms: Sequence[Term]) -> tuple[Entry, ...]:
    """The entries of a filter; the first one is where the program begins.

    Raises:
        NotSupportedError: there are more than the program has room for.
    """
    graph = _Graph()
    target = _KEEP
    for number, term in reversed(list(enumerate(terms, 1))):
        # at most ENTRIES of them, since every term has an entry
        target = graph.add(term.condition, target, VERDICT | min(number, ENTRIES))
    entries = graph.entries()
    if len(entries) > ENTRIES:
        reason = f"it takes {len(entries)} comparisons, but the table has room for {ENTRIES}"
        raise NotSupportedError("this filter in a pinned program", reason)
    return entries


def pack_table(entries: Sequence[Entry]) -> bytes:
    """Struct table."""
    packed = b"".join(_ENTRY.pack(*entry) for entry in entries)
    return packed.ljust(ENTRIES * _ENTRY.size, b"\0")


def listing(entries: Sequence[Entry]) -> str:
    """Return the entries as text: each test, and its successors."""
    return "\n".join(f"{place:4}: {_spell(entry)}" for place, entry in enumerate(entries))


def _spell(entry: Entry) -> str:
    left = entry.field.name.lower()
    if entry.field is FilterField.ANCESTOR:
        left += f"({entry.level})"
    if entry.shift or entry.mask != _MASK:
        left += f" >> {entry.shift} & {entry.mask:#x}"
    operator = _SPELLED[entry.operator]
    yes, no = _target(entry.yes), _target(entry.no)
    return f"if {left} {operator} {entry.value:#x} {yes} else {no}"


def _target(target: int) -> str:
    if not target & VERDICT:
        return f"goto {target}"
    term = target & ~VERDICT
    return f"drop ({term})" if term else "keep"


_SPELLED = {operator: text for text, operator in _OPERATORS.items()}


class _Graph:
    """Grows from the verdicts up, so that the entries that another one leads to exist before it.

    Until then a target is a verdict, or the number of an entry counted from the last one.
    """

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def entries(self) -> tuple[Entry, ...]:
        last = len(self._entries) - 1
        return tuple(
            entry._replace(yes=_relative_jump(entry.yes, last), no=_relative_jump(entry.no, last))
            for entry in reversed(self._entries)
        )

    def add(self, condition: Condition, yes: int, no: int) -> int:
        """Entries that lead to `yes` or `no`; where they begin."""
        if isinstance(condition, Opposite):
            return self.add(condition.part, no, yes)
        if isinstance(condition, All):
            for part in reversed(condition.parts):
                yes = self.add(part, yes, no)
            return yes
        if isinstance(condition, Any):
            for part in reversed(condition.parts):
                no = self.add(part, yes, no)
            return no
        if isinstance(condition, Compare):
            operator = _OPERATORS[condition.operator]
            return self._compare(condition.field, operator, condition.value, yes, no)
        if isinstance(condition, CommIn):
            for name in reversed(condition.names):
                no = self._add_name_test(name, yes, no)
            return no
        if isinstance(condition, Under):
            where = FilterField.ANCESTOR
            entry = Entry(condition.cgroup, _MASK, where, FilterOperator.EQ, 0, 0, yes, no)
            return self._append(entry._replace(level=condition.level))
        return self._within(condition.field, condition.ranges, yes, no)

    def _within(self, field: Field, ranges: Sequence[tuple[int, int]], yes: int, no: int) -> int:
        if len(ranges) > 1:
            half = len(ranges) // 2
            upper = self._within(field, ranges[half:], yes, no)
            lower = self._within(field, ranges[:half], yes, no)
            return self._compare(field, FilterOperator.GE, ranges[half][0], upper, lower)
        ((low, high),) = ranges
        if low == high:
            return self._compare(field, FilterOperator.EQ, low, yes, no)
        above = self._compare(field, FilterOperator.LE, high, yes, no)
        return self._compare(field, FilterOperator.GE, low, above, no) if low else above

    def _add_name_test(self, name: bytes, yes: int, no: int) -> int:
        head, tail = struct.unpack("=QQ", name.ljust(16, b"\0"))
        equal = FilterOperator.EQ
        rest = self._append(Entry(tail, _MASK, FilterField.COMM_TAIL, equal, 0, 0, yes, no))
        return self._append(Entry(head, _MASK, FilterField.COMM_HEAD, equal, 0, 0, rest, no))

    def _compare(
        self, field: Field, operator: FilterOperator, value: int, yes: int, no: int
    ) -> int:
        shift, mask = 0, _MASK
        if not field.word:
            where = FilterField[field.name.upper()]
        elif len(field.slices) > 1:
            where = FilterField.SNOOP
        else:
            where = _WORDS[field.word]
            for part in field.slices:
                shift, mask = part.shift, (1 << part.width) - 1
        return self._append(Entry(value, mask, where, operator, shift, 0, yes, no))

    def _append(self, entry: Entry) -> int:
        self._entries.append(entry)
        return len(self._entries) - 1


def _relative_jump(target: int, last: int) -> int:
    return target if target & VERDICT else last - target
