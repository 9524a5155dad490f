"""The records of programs as lines, or counted by a member. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from purebpf.errors import PurebpfError
from purebpf.observe.saved.program_records import ProgramRecord
from purebpf.results.model.json_values import json_value
from purebpf.results.model.spelling import printable

__all__ = ["NoSuchMemberError", "count_by", "json_counts", "json_lines", "lines", "table"]

_NS = 1_000_000_000


class NoSuchMemberError(PurebpfError):
    """No record has such a member."""

    exit_status = 2


def lines(records: Iterable[ProgramRecord]) -> Iterator[str]:
    """Yield a heading, and a line a record."""
    yield f"{'TIME':>15s} {'CPU':>3s} {'PID':>7s} {'TID':>7s} {'COMM':15s} RECORD\n"
    for record in records:
        seconds, rest = divmod(record.time_ns, _NS)
        when = f"{seconds}.{rest // 1000:06d}"
        text = printable(f"{record.event}: {_spell(record.value)}")
        comm = printable(record.comm)
        yield f"{when:>15s} {record.cpu:3d} {record.pid:7d} {record.tid:7d} {comm:15s} {text}\n"


def json_lines(records: Iterable[ProgramRecord]) -> Iterator[str]:
    """Yield an object a record on a line."""
    import json  # which text need not pay

    for record in records:
        yield json.dumps(json_value(record)) + "\n"


def count_by(records: Iterable[ProgramRecord], member: str) -> dict[str, Counter[str]]:
    """Return for each event with this member how many records have each of its values.

    A member of a struct inside is `outer.inner`.

    Raises:
        NoSuchMemberError: there are records, but none has such a member.
    """
    counts: dict[str, Counter[str]] = {}
    others: set[str] = set()
    for record in records:
        if record.event in others:
            continue
        value = record.value
        for step in member.split("."):
            value = getattr(value, step, None)
        if value is None:
            others.add(record.event)
            members = ", ".join(getattr(record.value, "_fields", ())) or "none, as it is bytes"
            last = f"records of {record.event} do not have the member {member!r}; known: {members}"
            continue
        counts.setdefault(record.event, Counter())[_spell(value)] += 1
    if others and not counts:
        raise NoSuchMemberError(last)
    return counts


def table(counts: dict[str, Counter[str]], member: str) -> Iterator[str]:
    """Yield a table for each event, the most frequent value first."""
    for event, counter in counts.items():
        total = counter.total()
        yield f"{printable(event)}: {total:,} records by {member}\n"
        yield f"{'RECORDS':>9s} {'SHARE':>6s} {member.upper()}\n"
        for value, count in sorted(counter.items(), key=lambda item: (-item[1], item[0])):
            yield f"{count:9d} {100 * count / total:5.1f}% {printable(value)}\n"


def json_counts(counts: dict[str, Counter[str]], member: str) -> Iterator[str]:
    """Yield an object an event on a line."""
    import json

    for event, counter in counts.items():
        values = [{"value": value, "records": n} for value, n in counter.most_common()]
        yield json.dumps({"event": event, "member": member, "counts": values}) + "\n"


def _spell(value: Any) -> str:
    """Return `member=value ...` of a struct; of anything else its value."""
    fields = getattr(value, "_fields", None)
    if fields is not None:
        return " ".join(f"{name}={_inner(getattr(value, name))}" for name in fields)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def _inner(value: Any) -> str:
    if hasattr(value, "_fields"):
        return "{" + _spell(value) + "}"
    if isinstance(value, str):
        return f'"{value}"'
    return _spell(value)
