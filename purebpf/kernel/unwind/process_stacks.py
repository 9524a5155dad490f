"""`ProcessStacks`: stack traces of processes as they live, from copied stacks."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from purebpf.closable import Closing
from purebpf.kernel.unwind.code_files import CodeFiles
from purebpf.kernel.unwind.copy_buffer import CopiedStack
from purebpf.symbols.budget import PROCESS, RUN, USER, Budget, OverBudgetError, Work
from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.syscall import proc
from purebpf.unwind.address_space import AddressSpace
from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.machine import X86_64
from purebpf.unwind.reason import Reason
from purebpf.unwind.unwinder import MAX_FRAMES, Unwinder, Unwound

__all__ = ["ProcessStacks", "live_mappings"]

_AGAIN_S = 0.02
"""How long after its mappings were read those of a process are not read again."""
_MOST_PROCESSES = 4096


class _Process(NamedTuple):
    """A process and its mappings as they were `read_at` (CLOCK_MONOTONIC, seconds)."""

    space: AddressSpace
    unwinder: Unwinder
    read_at: float


class ProcessStacks(Closing):
    """Unwinds copies of any process.

    The mappings of a process are read with its first copy, and again when a trace leads out of
    them: it may have loaded a library since, or executed another program.

    Args:
        mappings: what a process has mapped executable now; empty when it is gone.
        max_frames: how long a trace can be.
        budget: pays for what is read, on account of the process, its user and the run.
    """

    def __init__(
        self,
        mappings: Callable[[int], Iterable[Mapping]] | None = None,
        *,
        max_frames: int = MAX_FRAMES,
        budget: Budget | None = None,
    ) -> None:
        self._mappings = live_mappings if mappings is None else mappings
        self._max_frames = max_frames
        self._budget = Budget() if budget is None else budget
        self._files = CodeFiles(self._budget.spend)
        self._known: dict[int, _Process] = {}
        self._payers: dict[int, Work] = {}

    def unwind(self, copy: CopiedStack) -> Unwound:
        """The stack trace of a copy. Reads the files that it leads through, as far as needed."""
        if copy.is_compat:
            return Unwound([copy.pc], Reason.COMPAT32, 0)
        try:
            with self.on_behalf(copy.tgid):
                return self._unwind(copy)
        except OverBudgetError:
            return Unwound([copy.pc], Reason.OVER_BUDGET, 0)

    def on_behalf(self, tgid: int) -> Work:
        """What is read in this context is paid for by the process.

        Raises:
            OverBudgetError: there, when nothing is left.
        """
        return self._payer(tgid)

    def space(self, tgid: int) -> AddressSpace | None:
        """The mappings of a process as they were last read; a new object each time they are."""
        known = self._known.get(tgid)
        return known.space if known else None

    def file(self, key: Hashable) -> CfiFile | None:
        """The rules of what `CodeMapping.file` names; None if it is not open any more."""
        return self._files.find(key)

    def _unwind(self, copy: CopiedStack) -> Unwound:
        process = self._known.get(copy.tgid) or self._read(copy.tgid)
        if process is None:
            return Unwound([copy.pc], Reason.PROCESS_GONE, 0)
        found = process.unwinder.unwind(copy.pc, copy.registers, copy.stack)
        is_old = time.monotonic() > process.read_at + _AGAIN_S
        if found.reason is Reason.UNKNOWN_MAPPING and is_old:
            again = self._read(copy.tgid)
            if again is not None:
                return again.unwinder.unwind(copy.pc, copy.registers, copy.stack)
        return found

    def _payer(self, tgid: int) -> Work:
        """The accounts of a process; its user is 0 when it is gone."""
        payer = self._payers.get(tgid)
        if payer is None:
            uid = (proc.status(tgid) or {}).get("Uid", "").split()
            names = {RUN: 0, USER: int(uid[0]) if uid else 0, PROCESS: tgid}
            if len(self._payers) >= _MOST_PROCESSES:
                self._payers.clear()
            payer = self._payers[tgid] = self._budget.on_behalf(**names)
        return payer

    def forget(self, tgid: int) -> None:
        """Read the mappings of a process again with its next copy: it executed, or ended."""
        self._known.pop(tgid, None)
        self._payers.pop(tgid, None)

    def _read(self, tgid: int) -> _Process | None:
        space = AddressSpace(
            [self._files.mapping(mapping, tgid) for mapping in self._mappings(tgid)]
        )
        if not space.mappings:
            return None
        if len(self._known) >= _MOST_PROCESSES:
            del self._known[next(iter(self._known))]
        unwinder = Unwinder(X86_64, space, self._files.find, max_frames=self._max_frames)
        process = self._known[tgid] = _Process(space, unwinder, time.monotonic())
        return process

    def close(self) -> None:
        """Close the files; again is harmless."""
        self._known.clear()
        self._files.close()


def live_mappings(pid: int) -> Iterable[Mapping]:
    """The executable mappings of a process in /proc; none when it is gone."""
    return parse_maps(proc.maps(pid) or "")
