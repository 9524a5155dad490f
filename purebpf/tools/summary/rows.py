"""A table of system calls as rows of the screen. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from purebpf.cli.sheet import Choices, Column, SheetRow, Step
from purebpf.results.model.units import count_in_unit, in_unit
from purebpf.tools.summary.calls import Call
from purebpf.tools.summary.request import MODES
from purebpf.tools.summary.statistics import Statistics
from purebpf.tools.summary.table import Group, Label, Table

__all__ = ["CALL", "CHOICES", "COLUMNS", "rows"]

CALL = "syscall"
_GROUPS = tuple(mode for mode in MODES if mode != "total")
CHOICES = Choices(
    bys=("total", *_GROUPS),
    sorts=("total", "calls", "errors", "avg", "max"),
    deeper=dict.fromkeys(_GROUPS, CALL),
)
COLUMNS = (
    Column("calls", 8),
    Column("errors", 7),
    Column("total", 8),
    Column("avg", 8),
    Column("max", 8),
)


def rows(table: Table, path: Sequence[Step]) -> list[SheetRow]:
    """Calls, of everything or of the group that was looked into; or groups."""
    whole = sum(group.total_ns for group in table.groups)
    if path or table.mode == "total":
        chosen = [group for group in table.groups if not path or group.label == path[-1].key]
        return _merge(chosen, lambda _, call: (call, call.name), whole)
    return _merge(table.groups, lambda label, _: (label, _spell(table.mode, label)), whole)


def _merge(
    groups: Sequence[Group],
    name: Callable[[Label, Call], tuple[Hashable, str]],
    whole: int,
) -> list[SheetRow]:
    merged: dict[tuple[Hashable, str], Statistics] = {}
    for group in groups:
        for call, statistics in group.rows:
            merged.setdefault(name(group.label, call), Statistics()).merge(statistics)
    return [_row(key, text, row, whole) for (key, text), row in merged.items()]


def _spell(mode: str, label: Label) -> str:
    if mode == "cgroup":
        return label.name or f"id:{label.number}"
    return f"{label.name or '?'} ({label.number})"


def _row(key: Hashable, name: str, row: Statistics, whole: int) -> SheetRow:
    values = (row.calls, row.errors, row.total_ns, row.avg_ns, row.max_ns)
    times = (in_unit(time_ns) for time_ns in values[2:])
    cells = (count_in_unit(row.calls), count_in_unit(row.errors, 6), *times)
    return SheetRow(key, name, values, cells, row.total_ns / (whole or 1))
