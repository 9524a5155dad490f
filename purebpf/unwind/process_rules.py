"""The rules of one process's code: how to find the caller of each address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.unwind.machine import CALL_BYTES, STUB_BYTES, Machine, ends_in_call, is_stub
from purebpf.unwind.plan import Known, Special, plan_of
from purebpf.unwind.reason import Reason
from purebpf.unwind.rule import (
    DEPTH_ELSEWHERE,
    DEPTH_FRAME_ELSEWHERE,
    DEPTH_FRAMELESS,
    DEPTH_OUTERMOST,
    DEPTH_UNKNOWN,
)
from purebpf.unwind.shared_rules import SharedRules

if TYPE_CHECKING:
    from purebpf.unwind.code_lookup import CodeFile, FileLookup, Space

__all__ = ["EndOfTrace", "ProcessRules"]

_WORD = (1 << 64) - 1
_MOST_REMEMBERED = 1 << 15


class EndOfTrace(Exception):  # noqa: N818
    """The trace ends here."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason


class ProcessRules:
    """Finds the rule at each address of one process, and remembers it.

    Args:
        machine: its registers.
        space: its mappings.
        files: finds the rules of a mapped file.
        shared: rules by file and address, for all processes that have the same files.

    Attributes:
        machine: as above.
        lost: the registers that a call does not keep.
    """

    def __init__(
        self,
        machine: Machine,
        space: Space,
        files: FileLookup,
        shared: SharedRules | None = None,
    ) -> None:
        self._shared = SharedRules() if shared is None else shared
        self.machine = machine
        self._space = space
        self._files = files
        self._known: dict[int, Known] = {}
        self.lost = sorted(set(range(machine.registers)) - {*machine.kept, machine.sp})

    def rule(self, pc: int, *, exact: bool) -> Known:
        """The rules at a return address, or at an address itself (`exact`). Remembered.

        Raises:
            EndOfTrace: nothing is mapped there.
        """
        key = pc << 1 | exact
        known = self._known.get(key)
        if known is None:
            known = self._look_up(pc, exact=exact)
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[key] = known
        return known

    def rest(self) -> None:
        """Forget the rules of this process; the rules of its files are shared."""
        self._known.clear()

    def has_code(self, address: int) -> bool:
        """Return True if an address is in an executable mapping."""
        return self._space.find(address) is not None

    def strip(self, address: int) -> int:
        """A return address without its signature, which is above the bits of the address space: as
        many as make it one of code, if any do.
        """
        for bits in self.machine.address_bits:
            stripped = address & (1 << bits) - 1
            if self.has_code(stripped - 1):
                return stripped
        return address

    def stack_depth(self, pc: int) -> int | None:
        """Bytes that the function at an address has taken from the stack; None if not known."""
        mapping = self._space.find(pc)
        file = None if mapping is None or mapping.file is None else self._files(mapping.file)
        return file.stack_depth(pc - mapping.bias & _WORD) if mapping and file else None

    def code(self, address: int, size: int) -> bytes:
        """Instructions at an address, by its file; none of code that has no file."""
        mapping = self._space.find(address)
        file = None if mapping is None or mapping.file is None else self._files(mapping.file)
        return file.code(address - mapping.bias & _WORD, size) if mapping and file else b""

    def _look_up(self, pc: int, *, exact: bool) -> Known:
        at = pc if exact else pc - 1
        mapping = self._space.find(at)
        if mapping is None:
            raise EndOfTrace(Reason.UNKNOWN_MAPPING)
        file = None if mapping.file is None else self._files(mapping.file)
        if file is None:
            return Special.NO_RULE
        if file.machine not in {None, self.machine}:  # 32-bit code of a 64-bit process, as of Wine
            return Special.UNSUPPORTED
        own = pc - mapping.bias & _WORD
        known = self._shared.find(mapping.file, own, exact=exact)
        if known is None:
            known = self._rule_of(file, own, exact=exact)
            known = self._shared.keep(mapping.file, own, known, exact=exact)
        return known

    def _rule_of(self, file: CodeFile, pc: int, *, exact: bool) -> Known:
        """The same, by the file's own address."""
        address = pc - (not exact) & _WORD
        if self._is_sigreturn(file, pc, self.machine.sigreturn_pcs):
            return Special.SIGRETURN
        row = file.row(address)
        if row is not None:
            if not (exact or row.is_signal or self._may_follow_call(file, address + 1)):
                return Special.UNSUPPORTED  # where libgcc jumps to: an exception handler
            return plan_of(row, self.machine)
        if exact and self._is_sigreturn(file, address, (len(self.machine.sigreturn),)):
            return Special.SIGRETURN  # a sample in the system call, which does not return here
        if file.function(address) is not None:
            return Special.UNSUPPORTED
        if exact and is_stub(file.code(address - STUB_BYTES, 2 * STUB_BYTES), self.machine):
            return Special.STUB
        depth = file.stack_depth(address)
        if depth in (DEPTH_ELSEWHERE, DEPTH_OUTERMOST):
            if exact:
                return Special.UNKNOWN_STACK
            return Special.OUTERMOST if depth == DEPTH_OUTERMOST else Special.ELSEWHERE
        if depth is not None and depth >= 0 and not exact:
            if depth & DEPTH_FRAME_ELSEWHERE:
                return Special.FRAME_ELSEWHERE
            if not self.machine.leaf_in_register:
                return Special.DEPTH
        if not exact and self._is_entry(file, address + 1):
            return Special.ENTRY
        if depth == DEPTH_UNKNOWN:
            return Special.UNKNOWN_STACK
        return Special.FRAMELESS if depth == DEPTH_FRAMELESS else Special.NO_RULE

    def _is_entry(self, file: CodeFile, address: int) -> bool:
        """Return True if a return address was stored, not left by a call: a function begins at it.

        makecontext(3) starts a stack so: with the address of glibc's __start_context, which has
        rules, but none that hold on a stack that nothing was called on.
        """
        function = file.function(address)
        return (
            function is not None
            and function[0] == address
            and not self._may_follow_call(file, address)
        )

    def _may_follow_call(self, file: CodeFile, address: int) -> bool:
        """Return True if a call may have left this return address: the rules hold for no other.

        True where the file does not have the code.
        """
        before = file.code(address - CALL_BYTES, CALL_BYTES)
        return not before or ends_in_call(before, self.machine)

    def _is_sigreturn(self, file: CodeFile, address: int, distances: tuple[int, ...]) -> bool:
        """Return True if code is the call of rt_sigreturn(2), which has no rules, or wrong ones, in
        musl and in the vdso of arm64 before Linux 5.8 (commit 87676cfca141).
        """
        code = self.machine.sigreturn
        return any(
            address >= before and file.code(address - before, len(code)) == code
            for before in distances
        )
