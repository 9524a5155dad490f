"""Code that a process copies from its file to anonymous memory.

A record says that anonymous code was mapped, perhaps over a file's; the bytes follow it, and no
record says when; nor does one say that mremap(2) moved them. So /proc/PID/maps and the bytes are
read some time later, after ever longer times: ten times in the first ten seconds, twenty in the
first three hours. One process at a time, and with at most a twentieth of a CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from purebpf.errors import KernelError
from purebpf.observe.symbols.process_maps import read_maps
from purebpf.symbols.address_spaces import MappedCode
from purebpf.symbols.proc_maps import parse_maps
from purebpf.syscall import host_clock
from purebpf.tuples import NamedTuple
from purebpf.wire.perf_records import Comm, Exit

if TYPE_CHECKING:
    from purebpf.observe.symbols.copied_text import Copies

__all__ = ["CopiedCode"]

_FIRST_NS = 20_000_000
_IDLE_S = 3600.0
_MOST = 1024
_PAUSES = 19
"""Pauses between looks, in durations of the last one."""


class _Next(NamedTuple):
    """When to look at a process next, and after which time again."""

    at_ns: int
    after_ns: int
    is_due: bool


class CopiedCode:
    """Times of CLOCK_MONOTONIC, in ns.

    Attributes:
        lost: the processes of which not all anonymous code could be compared.
    """

    def __init__(self) -> None:
        self.lost = 0
        self._lost_of: set[int] = set()
        self._looks: dict[int, _Next] = {}
        self._first_ns = _FIRST_NS
        self._rest_until_ns = 0

    def note(self, pid: int, now_ns: int) -> None:
        """Look at a process that mapped anonymous code."""
        look = self._looks.get(pid)
        if look is None:
            if len(self._looks) >= _MOST:
                # or a process could begin with short waits again
                dropped = self._looks.pop(next(iter(self._looks)))
                self._first_ns = max(self._first_ns, dropped.after_ns)
            first_ns = self._first_ns
            self._looks[pid] = _Next(now_ns + first_ns, 2 * first_ns, is_due=True)
        elif not look.is_due:
            self._looks[pid] = look._replace(is_due=True)

    def note_copies(self, pid: int, copies: Copies, now_ns: int) -> None:
        """Look again at a process whose code may still be copied, and count what was left out."""
        if copies.is_cut and pid not in self._lost_of:
            if len(self._lost_of) >= _MOST:
                self._lost_of.clear()
            self._lost_of.add(pid)
            self.lost += 1
        if not copies.is_sure:
            self.note(pid, now_ns)

    def forget_ended(self, record: Comm | Exit) -> None:
        """Forget a process that ended, or executed another program."""
        ends = record.exec if isinstance(record, Comm) else record.pid == record.tid
        if ends:
            self._looks.pop(record.pid, None)
            self._lost_of.discard(record.pid)

    def next_s(self, now_ns: int) -> float:
        """Return the seconds until the next look; an hour when there is none."""
        due = [look.at_ns for look in self._looks.values() if look.is_due]
        if not due:
            return _IDLE_S
        return max(0.001, (max(min(due), self._rest_until_ns) - now_ns) / 1e9)

    def look(self, now_ns: int) -> Iterator[MappedCode]:
        """Yield the code of the process that has been due for longest, as if it was mapped now.

        Anonymous code that is a copy of a file's is code of that file.
        """
        due = [(look.at_ns, pid) for pid, look in self._looks.items() if look.is_due]
        at_ns, pid = min(due, default=(now_ns + 1, 0))
        if now_ns < max(at_ns, self._rest_until_ns):
            return
        after_ns = self._looks[pid].after_ns
        self._looks[pid] = _Next(now_ns + after_ns, 2 * after_ns, is_due=False)
        try:
            text = read_maps(pid, lambda copies: self.note_copies(pid, copies, now_ns))
        except KernelError:
            return
        mappings = [*parse_maps(text or "")]
        end_ns = host_clock.monotonic_ns()
        self._rest_until_ns = end_ns + _PAUSES * max(0, end_ns - now_ns)
        for each in mappings:
            yield MappedCode(pid, each.start, each.end, each.offset, each.file, now_ns)
