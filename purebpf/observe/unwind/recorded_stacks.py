"""`RecordedStacks`: stack traces of samples in a file, with the registers and stack they carry.

perf(1) records them with `--call-graph dwarf`, `purebpf record` with `--call-graph copy`:
PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER, perf_event_open(2). The rules come from the files
that were mapped, found on this machine by their paths and checked by inode or build id.
"""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.closable import Closing
from purebpf.observe.symbols.vdso import VDSO, is_own_kind, vdso_build_id
from purebpf.observe.unwind.code_files import CodeFiles
from purebpf.symbols.address_spaces import AddressSpaces
from purebpf.symbols.budget import PROCESS, RUN, Budget, OverBudgetError
from purebpf.symbols.proc_maps import MappedFile, Mapping
from purebpf.symbols.recorded import Recorded
from purebpf.unwind.address_space import CodeMapping
from purebpf.unwind.compat32 import compat_registers
from purebpf.unwind.machine import AARCH64, I386, X86_64, Machine
from purebpf.unwind.perf_registers import is_compat, sampled_registers
from purebpf.unwind.reason import Reason
from purebpf.unwind.unwinder import Unwinder, Unwound

__all__ = ["MACHINES", "RecordedStacks"]

MACHINES = {machine.name: machine for machine in (X86_64, AARCH64)}
"""Those that are unwound, as `uname -m` spells them."""

_MOST_PROCESSES = 4096
_MOST_MAPPINGS = 1 << 16


class RecordedStacks(Closing):
    """Unwinds the samples of a file in the order of its records.

    Args:
        machine: the machine of the recording.
        recorded: where they were recorded.
        budget: charged for reading, on account of the process and the run.

    Attributes:
        missing: files without which a trace may have been guessed or cut.
    """

    def __init__(
        self, machine: Machine, *, recorded: Recorded, budget: Budget | None = None
    ) -> None:
        self._machine = machine
        self._budget = Budget() if budget is None else budget
        self._files = CodeFiles(self._budget.spend)
        self._is_here = recorded.is_here
        self._has_vdso = bool(recorded.vdso) and recorded.vdso == vdso_build_id()
        self._mappings: dict[Mapping, CodeMapping] = {}
        self._unwinders: dict[tuple[int, int], tuple[int, Unwinder]] = {}
        self.missing: set[MappedFile] = set()

    def unwind(
        self, spaces: AddressSpaces, pid: int, mask: int, registers: Sequence[int], stack: bytes
    ) -> Unwound:
        """The user stack of a sample.

        Args:
            spaces: the mappings at the time of the sample.
            pid: its process.
            mask: attr.sample_regs_user.
            registers: one for each bit of the mask; none for a task of the kernel.
            stack: the bytes from the stack pointer up.
        """
        pc_and_values = sampled_registers(self._machine, mask, registers)
        if pc_and_values is None:
            return Unwound([], Reason.NO_REGISTERS, 0)
        pc, values = pc_and_values
        machine = self._machine
        if is_compat(machine, mask, registers):
            machine, values = I386, compat_registers(values)
        try:
            with self._budget.on_behalf(**{RUN: 0, PROCESS: pid}):
                return self._unwinder(spaces, pid, machine).unwind(pc, values, stack)
        except OverBudgetError:
            return Unwound([pc], Reason.OVER_BUDGET, 0)

    def _unwinder(self, spaces: AddressSpaces, pid: int, machine: Machine) -> Unwinder:
        """Return the unwinder of a process as long as its mappings do not change."""
        version = spaces.version(pid)
        entry = self._unwinders.get((pid, machine.elf))
        if entry is None or entry[0] != version:
            if len(self._unwinders) >= _MOST_PROCESSES:
                self._unwinders.clear()
            unwinder = Unwinder(machine, _Space(self, spaces, pid), self._files.find)
            entry = self._unwinders[pid, machine.elf] = version, unwinder
        return entry[1]

    def code(self, mapping: Mapping, pid: int) -> CodeMapping:
        """Return a mapping with the parts of its file that unwinding needs."""
        entry = self._mappings.get(mapping)
        if entry and (entry.file is None or self._files.find(entry.file)):
            return entry
        if not self._may_read(mapping):
            code = CodeMapping(mapping.start, mapping.end, 0, None)
        else:
            code = self._files.mapping(mapping, pid)
        if code.file is None and not mapping.file.is_anonymous:
            self.missing.add(mapping.file)
        if len(self._mappings) >= _MOST_MAPPINGS:
            self._mappings.clear()
        self._mappings[mapping] = code
        return code

    def _may_read(self, mapping: Mapping) -> bool:
        """Return True if a file here can be proved to be the one that was mapped."""
        file = mapping.file
        if file.path == VDSO:
            return self._has_vdso and is_own_kind(mapping)
        if file.is_memory_file:  # only its process shows it
            return False
        return self._is_here or bool(file.build_id)

    def close(self) -> None:
        """Close the files; again is harmless."""
        self._unwinders.clear()
        self._files.close()


class _Space:
    """The mappings of a process, by the records so far."""

    def __init__(self, stacks: RecordedStacks, spaces: AddressSpaces, pid: int) -> None:
        self._stacks = stacks
        self._spaces = spaces
        self._pid = pid

    def find(self, address: int) -> CodeMapping | None:
        """The mapping of an address."""
        mapping = self._spaces.find_current(self._pid, address)
        return None if mapping is None else self._stacks.code(mapping, self._pid)
