"""Perf maps of live processes: found in their own /tmp, read on when they grew."""

from __future__ import annotations

import os
from collections.abc import Iterator

from purebpf.errors import KernelError
from purebpf.files.regular_file import open_regular
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
    the maps: one that was last written before its process began belongs to an earlier one.

    Args:
        budget: charged for reading.

    Attributes:
        refused: processes that have a map which does not count, and why.
    """

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = Budget() if budget is None else budget
        self.refused: dict[int, Reason] = {}
        self._maps: dict[int, _Known] = {}

    def known(self, pid: int) -> PerfMap | None:
        """Return the content read last."""
        return self._maps[pid].names if pid in self._maps else None

    def read(self, pid: int, *, lives: bool = True) -> PerfMap | None:
        """The perf map of a process as it is now; None without one.

        When the process has exited, or has none in its own file system, a map in our /tmp with its
        number is used.

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
            jit_map = self._maps.get(pid)
            if jit_map is None or not self._read_on(fd, status, jit_map):
                jit_map = self._read_whole(fd, status)
        finally:
            os.close(fd)
        self._maps.pop(pid, None)
        self._maps[pid] = jit_map
        self._forget_oldest()
        return jit_map.names

    def _read_whole(self, fd: int, status: os.stat_result) -> _Known:
        """Read a file, or the last lines of one that has been growing for weeks."""
        self._budget.spend(min(status.st_size, _MAX_SIZE))
        begin = max(status.st_size - _MAX_SIZE, 0)
        text = _read(fd, begin, _MAX_SIZE)
        if begin:
            skipped = text.find(b"\n") + 1
            begin, text = begin + skipped, text[skipped:]
        names = PerfMap(text, self._budget.spend)
        return _Known((status.st_dev, status.st_ino), begin, status.st_size, names)

    def _read_on(self, fd: int, status: os.stat_result, jit_map: _Known) -> bool:
        """Read the appended part; return False if the file was replaced or written anew.

        `jcmd PID Compiler.perfmap` writes all of a file again.
        """
        names = jit_map.names
        end = jit_map.begin + names.size
        if jit_map.file != (status.st_dev, status.st_ino) or status.st_size < jit_map.size:
            return False
        if status.st_size == jit_map.size:
            return True
        if status.st_size - jit_map.begin > 2 * _MAX_SIZE:
            return False
        compared = len(names.tail)
        self._budget.spend(status.st_size - end + compared)
        text = _read(fd, end - compared, status.st_size - end + compared)
        if text[:compared] != names.tail:
            return False
        names.grow(text[compared:], self._budget.spend)
        jit_map.size = status.st_size
        return True

    def _forget_oldest(self) -> None:
        """Drop the maps that were read first until the rest is small; never the last one."""
        total = sum(jit_map.names.nbytes for jit_map in self._maps.values())
        while len(self._maps) > 1 and (len(self._maps) > _KEEP or total > _KEEP_BYTES):
            total -= self._maps.pop(next(iter(self._maps))).names.nbytes


class _StaleError(OSError):
    """The map of an earlier process of the same number."""


class _Known:
    """The content of a file so far.

    Attributes:
        file: device and inode.
        begin: where in the file the text of `names` begins.
        size: of the file then.
    """

    __slots__ = ("begin", "file", "names", "size")

    def __init__(self, file: tuple[int, int], begin: int, size: int, names: PerfMap) -> None:
        self.file = file
        self.begin = begin
        self.size = size
        self.names = names


def _read(fd: int, offset: int, size: int) -> bytes:
    with open(fd, "rb", closefd=False) as file:
        file.seek(offset)
        return file.read(size)


def owners(pid: int) -> frozenset[int]:
    """The users that may own a perf map of a process: its own, and root.

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
        yield f"/proc/{proc.with_memory(pid)}/root{_TMP}/{perf_map_name(pid, nspid)}"
    yield f"{_TMP}/{perf_map_name(pid)}"
