"""jitdump files of processes: found by their mapping, read on as they grow."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from itertools import islice

from purebpf.observe.symbols.jit_maps import owners
from purebpf.observe.symbols.mapped_files import open_mapped
from purebpf.symbols.budget import Budget
from purebpf.symbols.jitdump import JitDump, is_jitdump_name
from purebpf.symbols.proc_maps import Mapping

__all__ = ["JitDumps"]

_KEEP = 64
_KEEP_BYTES = 1 << 28
_OF_A_PROCESS = 8
"""Dumps that a process may have: one for each program that it executed."""

_Identity = tuple[int, int]  # st_dev, st_ino


class JitDumps:
    """The names that just-in-time compilers wrote to jit-PID.dump.

    A compiler maps its file as executable, to show a recorder of mappings where it is: in any
    directory, under the number that the process has in its own namespace, perhaps deleted.

    Args:
        budget: charged for reading.
    """

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = Budget() if budget is None else budget
        self._dumps: dict[_Identity, JitDump] = {}
        self._of: dict[int, list[_Identity]] = {}

    def find(self, pid: int, address: int) -> tuple[str, int] | None:
        """The function at an address, and the bytes into it, as far as was read."""
        for identity in self._of.get(pid, ()):
            dump = self._dumps.get(identity)
            symbol = dump.find(address) if dump else None
            if symbol is not None:
                return symbol
        return None

    def has(self, pid: int) -> bool:
        """Return True if the process has a jitdump."""
        return bool(self._of.get(pid))

    def read(self, mappings: Iterable[Mapping], family: tuple[int, ...], *, lives: bool) -> None:
        """Read on in the dumps of a process.

        Args:
            mappings: the mappings of the process, also earlier ones.
            family: the process, then its ancestors, which may share its mount namespace.
            lives: it has not exited.

        Raises:
            OverBudgetError: it would cost more than the process, its user or the run has left.
        """
        pid = family[0]
        trusted = owners(pid if lives else 0)
        dumps = (mapped for mapped in mappings if is_jitdump_name(mapped.file.path))
        for mapping in islice(dumps, _OF_A_PROCESS):
            identity = self._read(mapping, family, trusted)
            if identity is not None and identity not in self._of.setdefault(pid, []):
                self._of[pid].insert(0, identity)
                del self._of[pid][_OF_A_PROCESS:]

    def _read(
        self, mapping: Mapping, family: tuple[int, ...], trusted: frozenset[int]
    ) -> _Identity | None:
        try:
            fd = open_mapped(mapping, family)
        except OSError:
            return None
        try:
            status = os.fstat(fd)
            # the process mapped that very file, so it vouches for it; else its owner must
            if not mapping.file.inode and status.st_uid not in trusted:
                return None
            identity = status.st_dev, status.st_ino
            dump = self._dumps.pop(identity, None)
            dump = JitDump() if dump is None else dump
            self._dumps[identity] = dump
            dump.grow(partial(self._pread, fd), status.st_size)
        except OSError:
            return None
        finally:
            os.close(fd)
            self._forget_oldest()
        return identity

    def _pread(self, fd: int, at: int, size: int) -> bytes:
        self._budget.spend(size)
        return os.pread(fd, size, at)

    def _forget_oldest(self) -> None:
        """Drop the oldest data, until the rest is small; never the newest."""
        total = sum(dump.nbytes for dump in self._dumps.values())
        while len(self._dumps) > 1 and (len(self._dumps) > _KEEP or total > _KEEP_BYTES):
            total -= self._dumps.pop(next(iter(self._dumps))).nbytes
