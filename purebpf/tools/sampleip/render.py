"""Samples and counts as lines. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from purebpf.results.model.spelling import printable, spell_location
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["COUNT_HEADER", "SAMPLE_HEADER", "count_lines", "dump", "sample_line"]

SAMPLE_HEADER = f"{'TIME':>14s} {'CPU':>3s} {'COMM':16s} {'PID/TID':15s} {'IP':16s} SYMBOL\n"
COUNT_HEADER = f"{'ADDR':18s} {'PID':>7s} {'COUNT':>9s} SYMBOL\n"

_ROW = 8
_SECOND_NS = 1_000_000_000


def sample_line(event: Any, where: Frame | Unknown) -> str:
    """One `struct ip_event` on a line."""
    who = f"{event.tgid}/{event.tid}"
    return (
        f"{_time(event.time_ns):>14s} {event.cpu:3d} {printable(event.comm):16s} {who:15s} "
        f"{event.ip:016x} {spell_location(where)}\n"
    )


def dump(event: Any, data: bytes) -> str:
    """One sample as perf script prints the output of a program: its bytes, eight in a row.

    Unprintable characters, and the terminating zero, become dots.
    """
    lines = [f"{printable(event.comm)} {event.tid} {_time(event.time_ns)}:\n"]
    for at in range(0, len(data), _ROW):
        row = data[at : at + _ROW]
        digits = "".join(f" {byte:02x}" for byte in row) + "   " * (_ROW - len(row))
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)  # noqa: PLR2004
        head = "BPF output:" if at == 0 else " " * 11
        lines.append(f"{head:>17s} {at:04x}:{digits}  {text:8s}\n")
    return "".join([*lines, "\n"])


def count_lines(rows: Iterable[tuple[int, int, int, Frame | Unknown]]) -> Iterator[str]:
    """The rows (address, pid or 0, count, where), the greatest count last."""
    for address, pid, count, where in sorted(rows, key=lambda row: (row[2], row[0], row[1])):
        owner = str(pid) if pid else "-"
        yield f"0x{address:016x} {owner:>7s} {count:9d} {spell_location(where)}\n"


def _time(time_ns: int) -> str:
    return f"{time_ns // _SECOND_NS}.{time_ns % _SECOND_NS // 1000:06d}"
