"""Perf maps of live processes: found in their own /tmp, read again when they grew."""

from __future__ import annotations

import os
import stat

from purebpf.errors import KernelError
from purebpf.symbols.perf_map import PerfMap, perf_map_name
from purebpf.syscall import proc

__all__ = ["JitMaps"]

_TMP = "/tmp"  # noqa: S108  the place is the convention
_MAX_SIZE = 1 << 28
_KEEP = 64


class JitMaps:
    """The names that just-in-time compilers wrote to /tmp/perf-PID.map."""

    def __init__(self) -> None:
        self._maps: dict[int, tuple[int, PerfMap]] = {}  # pid -> (size of the file, what it says)

    def known(self, pid: int) -> PerfMap | None:
        """What was read last."""
        return self._maps[pid][1] if pid in self._maps else None

    def read(self, pid: int) -> PerfMap | None:
        """The perf map of a process as it is now; None without one.

        When the process has exited, or its file system cannot be seen, a map in our own /tmp that
        bears its number is taken.
        """
        try:
            nspid = (proc.status(pid) or {}).get("NSpid", "")
        except KernelError:
            nspid = ""
        own = f"{_TMP}/{perf_map_name(pid)}"
        for path in (f"/proc/{pid}/root{_TMP}/{perf_map_name(pid, nspid)}", own):
            try:
                return self._read(pid, path)
            except OSError:
                continue
        return self.known(pid)

    def _read(self, pid: int, path: str) -> PerfMap:
        """The map at a path.

        Raises:
            OSError: there is none. A link or a device is none: another user may have put it there.
        """
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        with open(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise FileNotFoundError(path)
            known = self._maps.get(pid)
            if known is not None and known[0] == status.st_size:
                return known[1]
            found = PerfMap(file.read(_MAX_SIZE))
        if pid not in self._maps and len(self._maps) >= _KEEP:
            del self._maps[next(iter(self._maps))]
        self._maps[pid] = status.st_size, found
        return found
