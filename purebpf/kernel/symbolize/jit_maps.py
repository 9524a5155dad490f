"""Perf maps of live processes: found in their own /tmp, read again when they grew."""

from __future__ import annotations

import os
from collections.abc import Iterator

from purebpf.errors import KernelError
from purebpf.kernel.host.regular_file import open_regular
from purebpf.symbols.budget import Budget
from purebpf.symbols.frame import Reason
from purebpf.symbols.perf_map import PerfMap, perf_map_name
from purebpf.syscall import proc

__all__ = ["JitMaps", "owners"]

_TMP = "/tmp"  # noqa: S108  the place is the convention
_MAX_SIZE = 1 << 26
_KEEP = 64
_KEEP_BYTES = 1 << 28
_ROOT = 0
_CLOCK_S = 2.0
"""How much a file's time may be before the process's start: they are rounded differently."""


class JitMaps:
    """The names that just-in-time compilers wrote to /tmp/perf-PID.map.

    Anyone may create a file of that name, also before there is a process of that number. So one
    counts only if the process's user owns it, or root. PIDs are used again, and no process removes
    the maps: one that was last written before its process was there is that of an earlier one.

    Args:
        budget: pays for what is read.

    Attributes:
        refused: processes that have a map which does not count, and why.
    """

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = Budget() if budget is None else budget
        self.refused: dict[int, Reason] = {}
        self._maps: dict[int, tuple[int, PerfMap]] = {}  # pid -> (size of the file, what it says)

    def known(self, pid: int) -> PerfMap | None:
        """What was read last."""
        return self._maps[pid][1] if pid in self._maps else None

    def read(self, pid: int, *, lives: bool = True) -> PerfMap | None:
        """The perf map of a process as it is now; None without one.

        When the process has exited, or has none in its own file system, a map in our /tmp that
        bears its number is taken.

        Raises:
            OverBudgetError: it would cost more than the process, its user or the run has left.
        """
        trusted = owners(pid if lives else 0)
        born = (proc.start_time(pid) if lives else None) or 0.0
        self.refused.pop(pid, None)
        for path in _places(pid, lives=lives):
            try:
                return self._read(pid, path, trusted, born)
            except PermissionError:
                self.refused[pid] = Reason.UNTRUSTED_PERF_MAP
            except _StaleError:
                self.refused[pid] = Reason.STALE_PERF_MAP
            except OSError:
                continue
        return self.known(pid)

    def _read(self, pid: int, path: str, trusted: frozenset[int], born: float) -> PerfMap:
        """The map at a path.

        Raises:
            OSError: there is none. A link or a device is none: another user may have put it there.
            PermissionError: it is not ours to read, or a stranger's.
            _StaleError: it was there before the process.
        """
        fd = open_regular(path, follow=False)
        try:
            status = os.fstat(fd)
            if status.st_uid not in trusted:
                raise PermissionError(path)
            if status.st_mtime < born - _CLOCK_S:
                self._maps.pop(pid, None)
                raise _StaleError(path)
            known = self._maps.get(pid)
            if known is not None and known[0] == status.st_size:
                return known[1]
            self._budget.spend(min(status.st_size, _MAX_SIZE))
            perf_map = PerfMap(_end(fd, status.st_size), self._budget.spend)
        finally:
            os.close(fd)
        self._maps.pop(pid, None)
        self._maps[pid] = status.st_size, perf_map
        self._forget_oldest()
        return perf_map

    def _forget_oldest(self) -> None:
        """Drop what was read first, until the rest is small; never what was read last."""
        total = sum(perf_map.nbytes for _, perf_map in self._maps.values())
        while len(self._maps) > 1 and (len(self._maps) > _KEEP or total > _KEEP_BYTES):
            total -= self._maps.pop(next(iter(self._maps)))[1].nbytes


class _StaleError(OSError):
    """The map of an earlier process of the same number."""


def _end(fd: int, size: int) -> bytes:
    """The file's text, or the last lines of one that has been growing for weeks."""
    skipped = max(size - _MAX_SIZE, 0)
    with open(fd, "rb", closefd=False) as file:
        file.seek(skipped)
        text = file.read(_MAX_SIZE)
    return text.partition(b"\n")[2] if skipped else text


def owners(pid: int) -> frozenset[int]:
    """Who may own what a process says about itself: its users, and root.

    The user of an exited process (or 0) is unknown: ourselves then, as in perf.
    """
    try:
        users = (proc.status(pid) or {}).get("Uid", "") if pid else ""
    except KernelError:
        users = ""
    return frozenset({_ROOT, *(map(int, users.split()) if users else (os.geteuid(),))})


def _places(pid: int, *, lives: bool) -> Iterator[str]:
    if lives:
        try:
            nspid = (proc.status(pid) or {}).get("NSpid", "")
        except KernelError:
            nspid = ""
        yield f"/proc/{pid}/root{_TMP}/{perf_map_name(pid, nspid)}"
    yield f"{_TMP}/{perf_map_name(pid)}"
