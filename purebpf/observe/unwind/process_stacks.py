"""`ProcessStacks`: stack traces of processes as they live, from copied stacks."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable
from contextlib import suppress

from purebpf.closable import Closing
from purebpf.observe.symbols.mapped_files import Identity
from purebpf.observe.unwind.code_files import CodeFiles
from purebpf.observe.unwind.copied_stack import CopiedStack
from purebpf.observe.unwind.programs import EarlierLookup, Met, Program, Programs, live_mappings
from purebpf.symbols.budget import PROCESS, RUN, USER, Budget, OverBudgetError, Work
from purebpf.symbols.proc_maps import Mapping
from purebpf.syscall import host_clock, proc
from purebpf.unwind.address_space import AddressSpace
from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.compat32 import compat_registers
from purebpf.unwind.generated import GeneratedCode
from purebpf.unwind.reason import Reason
from purebpf.unwind.unwinder import MAX_FRAMES, Unwound

__all__ = ["ProcessStacks", "live_mappings"]

_AGAIN_NS = 20_000_000
"""How long after its mappings were read those of a process are not read again."""
_MOST_PROCESSES = 4096


class ProcessStacks(Closing):
    """Unwinds copies of any process.

    The mappings of a process are read with its first copy, and again when a trace leads out of
    them: it may have loaded a library since. A follower of processes passes on their records, so
    that a copy is unwound by the mappings at its time.

    Args:
        mappings: returns the present executable mappings of a process; empty when it is gone.
        earlier: returns the mappings of a process at a time (CLOCK_MONOTONIC, ns), from the
            follower of processes; called when it is gone, or has executed another program since.
        catch_up: calls `forked`, `executed`, `exited` and `mapped` for all records up to now.
        max_frames: how long a trace can be.
        budget: charged for reading, on account of the process, its user and the run.
    """

    def __init__(
        self,
        mappings: Callable[[int], Iterable[Mapping]] | None = None,
        *,
        earlier: EarlierLookup | None = None,
        catch_up: Callable[[], object] | None = None,
        max_frames: int = MAX_FRAMES,
        budget: Budget | None = None,
    ) -> None:
        self._budget = Budget() if budget is None else budget
        self._files = CodeFiles(self._budget.spend)
        self._programs = Programs(
            self._files,
            live_mappings if mappings is None else mappings,
            earlier=earlier,
            catch_up=catch_up,
            max_frames=max_frames,
        )
        self._payers: dict[int, Work] = {}

    # What processes do. Numbers are those of our pid namespace, times CLOCK_MONOTONIC in ns.

    def forked(self, parent: int, child: int, time_ns: int) -> None:
        """Handle a new process, with the mappings of its parent."""
        self._programs.forked(parent, child, time_ns)
        self._payers.pop(child, None)

    def executed(self, tgid: int, time_ns: int) -> None:
        """A process executes another program."""
        self._programs.executed(tgid, time_ns)
        self._payers.pop(tgid, None)

    def exited(self, tgid: int, time_ns: int) -> None:
        """A process ended."""
        self._programs.exited(tgid, time_ns)
        self._payers.pop(tgid, None)

    @property
    def followed(self) -> Container[int]:
        """Processes whose later mappings `mapped` must receive."""
        return self._programs.followed

    def mapped(self, tgid: int, time_ns: int, mapping: Mapping) -> None:
        """A process mapped code."""
        self._programs.mapped(tgid, time_ns, mapping)

    def forget(self, tgid: int) -> None:
        """Read the mappings of a process again with its next copy: it executed, or ended."""
        self._programs.forget(tgid)
        self._payers.pop(tgid, None)

    @property
    def remapped(self) -> list[int]:
        """Processes that mapped code since `space` was called."""
        return self._programs.remapped

    # Stack traces

    def unwind(
        self, copy: CopiedStack, generated: GeneratedCode | None = None, *, is_exact: bool = True
    ) -> Unwound:
        """The stack trace of a copy. Reads the files that it leads through, as far as needed.

        Args:
            copy: the registers and the stack.
            generated: leaves the frames of the process's generated code.
            is_exact: False: the copy begins at a return address, with the frame that it leads to.
        """
        try:
            with self.on_behalf(copy.tgid):
                return self._unwind(copy, generated, is_exact=is_exact)
        except OverBudgetError:
            return Unwound([copy.pc], Reason.OVER_BUDGET, 0)

    def meet(self, tgid: int, time_ns: int) -> Met:
        """Read the mappings of a process at a time, while it is there: `unwind` may come later."""
        with suppress(OverBudgetError), self.on_behalf(tgid):  # then `unwind` says so
            return self._programs.meet(tgid, time_ns)
        return Met(is_over=False)

    def rest(self, busy: Container[Hashable] = ()) -> None:
        """Drop data that can be read again, or is shared by all processes.

        Args:
            busy: files under construction; they keep their data.
        """
        self._files.rest(busy)
        self._programs.rest()
        self._budget.rest()
        for tgid in self._payers.keys() - self._programs.running_now:
            del self._payers[tgid]

    def on_behalf(self, tgid: int) -> Work:
        """Charge the process for reads in this context.

        Raises:
            OverBudgetError: raised there, when the budget is spent.
        """
        return self._payer(tgid)

    def space(self, tgid: int) -> AddressSpace | None:
        """Return the known mappings of a process; a new object each time they change.

        Raises:
            OverBudgetError: reading the headers of its files costs too much.
        """
        program = self._programs.running(tgid)
        return program.space if program else None

    def space_at(self, tgid: int, time_ns: int) -> AddressSpace | None:
        """Return the mappings that a process had at a time, also if it is over. Raises as `space`.

        Args:
            tgid: the process.
            time_ns: CLOCK_MONOTONIC.
        """
        program = self._programs.at(tgid, time_ns)
        return program.space if program else None

    def file(self, key: Hashable) -> CfiFile | None:
        """Return the rules of the file that `CodeMapping.file` names; None if it is not open any
        more.
        """
        return self._files.find(key)

    def held(self, mapping: Mapping, pid: int) -> int | None:
        """Return the open descriptor of a mapped file, see `CodeFiles.held`."""
        return self._files.held(mapping, pid)

    def noted(self, mapping: Mapping, pid: int) -> Identity | None:
        """Return the identity of a mapped file, see `CodeFiles.noted`."""
        return self._files.noted(mapping, pid)

    def _unwind(
        self, copy: CopiedStack, generated: GeneratedCode | None, *, is_exact: bool
    ) -> Unwound:
        program = self._programs.at(copy.tgid, copy.time_ns)
        if program is None:
            return Unwound([copy.pc], Reason.PROCESS_GONE, 0)
        trace = _unwound(program, copy, generated, is_exact=is_exact)
        if trace.reason is Reason.UNKNOWN_MAPPING and self._is_old(program):
            again = self._programs.read(copy.tgid, copy.time_ns)
            if again is not None:
                return _unwound(again, copy, generated, is_exact=is_exact)
        return trace

    @staticmethod
    def _is_old(program: Program) -> bool:
        return host_clock.monotonic_ns() > program.read_ns + _AGAIN_NS

    def _payer(self, tgid: int) -> Work:
        """The accounts of a process; its user is 0 when it is gone."""
        payer = self._payers.get(tgid)
        if payer is None:
            names = {RUN: 0, USER: proc.real_user(tgid) or 0, PROCESS: tgid}
            if len(self._payers) >= _MOST_PROCESSES:
                self._payers.clear()
            payer = self._payers[tgid] = self._budget.on_behalf(**names)
        return payer

    def close(self) -> None:
        """Close the files; again is harmless."""
        self._programs.clear()
        self._files.close()


def _unwound(
    program: Program, copy: CopiedStack, generated: GeneratedCode | None, *, is_exact: bool
) -> Unwound:
    """Return a trace by the rules of a program."""
    if not copy.is_compat:
        where = copy.pc, copy.registers, copy.stack, generated
        return program.unwinder.unwind(*where, is_exact=is_exact)
    if program.compat is None:  # arm64
        return Unwound([copy.pc], Reason.COMPAT32, 0)
    registers = compat_registers(copy.registers)
    return program.compat.unwind(copy.pc, registers, copy.stack, is_exact=is_exact)
