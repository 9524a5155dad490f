"""Commands that show the files and peers of calls, which a summary only counts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from purebpf.tools.summary.table import Table
from purebpf.tuples import NamedTuple

__all__ = ["Hint", "hints"]

_OPENS = frozenset({"open", "openat", "openat2", "creat"})
_MANY_OPENS, _PART = 500.0, 0.1
"""A second, and of all calls: so many mostly are about the same files."""
_FAILED, _MOSTLY = 1.0, 0.5
"""Attempts to connect a second that fail, or have not ended at once, and their part."""


class Hint(NamedTuple):
    """A sentence about another command that says more of a call ("open" or "connect")."""

    call: str
    text: str


def hints(table: Table, pids: Sequence[int]) -> Iterator[Hint]:
    """Yield a hint for each other command that says more of these calls.

    Args:
        table: of the whole run.
        pids: the processes that were asked for; one only has a command of its own.
    """
    calls: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    for group in table.groups:
        for row in group.rows:
            name = "open" if row.call.name in _OPENS else row.call.name
            calls[name] += row.statistics.calls
            errors[name] += row.statistics.errors
    seconds = table.duration_ns / 1e9 or 1.0
    one = pids[0] if len(pids) == 1 else 0
    opens, failed = calls["open"], errors["connect"]
    if opens >= _MANY_OPENS * seconds and opens >= _PART * calls.total():
        command = f"purebpf open --summary -p {one}" if one else "purebpf open --summary"
        yield Hint("open", f"the files of {opens / seconds:.0f} opens a second: {command}")
    if failed >= _FAILED * seconds and failed >= _MOSTLY * calls["connect"]:
        command = f"purebpf tcp --summary -p {one}" if one else "purebpf tcp --summary"
        yield Hint("connect", f"how {failed / seconds:.0f} connects a second ended: {command}")
