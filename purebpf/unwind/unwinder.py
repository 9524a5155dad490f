"""From registers and a copied stack to a whole stack trace, by complete call frame information.

Rules that real code needs beyond the DWARF standard:

- The caller is looked up at its return address - 1, as a call may be a function's last instruction;
  the leaf, and a frame that a signal interrupted, at the address itself.
- A register saved below the stack pointer has been popped: GCC describes epilogues so.
- A frame is above the one it called, except frames of signals, which may have a separate stack. A
  rule that contradicts this is not followed.
- A trace ends at a return address that a rule calls undefined, or at a function that nothing
  called. A return address of 0 does not end it, and code without a rule does not either.
- Where code has no rule, the frame pointer is followed if it looks like one, and that is counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.tuples import NamedTuple
from purebpf.unwind.code_lookup import CodeFile, FileLookup, Space
from purebpf.unwind.expression import ExpressionError, evaluate
from purebpf.unwind.generated import FrameState, GeneratedCode
from purebpf.unwind.leaf import FAR, NEAR, Ahead, call_target, has_set_up, is_plt_stub, look_ahead
from purebpf.unwind.machine import CALL_BYTES, STUB_BYTES, X86_64, Machine, ends_in_call, is_stub
from purebpf.unwind.plan import Known, Plan, Special, plan_of
from purebpf.unwind.reason import Reason
from purebpf.unwind.rule import (
    CFA_EXPRESSION,
    DEPTH_BITS,
    DEPTH_ELSEWHERE,
    DEPTH_FRAME_ELSEWHERE,
    DEPTH_FRAMELESS,
    DEPTH_NO_FRAME,
    DEPTH_OUTERMOST,
    How,
    Row,
)
from purebpf.unwind.shared_rules import SharedRules
from purebpf.unwind.stack_copy import OutsideError, StackCopy

__all__ = ["MAX_FRAMES", "Unwinder", "Unwound"]

MAX_FRAMES = 1024
"""Of a stack that is unwound from a copy; what programs and the kernel walk ends at 127."""
_WORD = (1 << 64) - 1
_MOST_REMEMBERED = 1 << 15
"""Addresses with rules that one `Unwinder` keeps."""


class Unwound(NamedTuple):
    """A stack trace.

    Attributes:
        frames: the address of the leaf, then return addresses, as the kernel's own traces have
            them: the caller is at the address - 1. An address that a signal interrupted has 1
            added, so that this holds for it, and so has a function's start that nothing called.
        reason: how it ended.
        guessed: how many steps followed the frame pointer for lack of a rule.
    """

    frames: list[int]
    reason: Reason
    guessed: int


class _Stop(Exception):  # noqa: N818
    """The trace ends here."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason


class Unwinder:
    """Unwinds the stacks of one process.

    Args:
        machine: its registers.
        space: its mappings.
        files: finds the rules of a mapped file.
        max_frames: how long a trace can be.
        shared: rules by file and address, for all processes that have the same files.

    Attributes:
        lost: the registers that a call does not keep.
    """

    def __init__(
        self,
        machine: Machine,
        space: Space,
        files: FileLookup,
        *,
        max_frames: int = MAX_FRAMES,
        shared: SharedRules | None = None,
    ) -> None:
        self._shared = SharedRules() if shared is None else shared
        self._machine = machine
        self._space = space
        self._files = files
        self._max_frames = max_frames
        self._known: dict[int, Known] = {}
        self.lost = sorted(set(range(machine.registers)) - {*machine.kept, machine.sp})

    def unwind(
        self,
        pc: int,
        registers: Sequence[int | None],
        stack: bytes,
        generated: GeneratedCode | None = None,
        *,
        is_exact: bool = True,
    ) -> Unwound:
        """One stack trace.

        Args:
            pc: the address of the instruction that runs next.
            registers: by DWARF's numbers; None: not known. The stack pointer is among them.
            stack: the bytes at the stack pointer and above.
            generated: leaves the frames of generated code; None: the frame pointer is followed.
            is_exact: False: `pc` is a return address, of a frame whose callees are known.
        """
        machine = self._machine
        values = list(registers[: machine.registers])
        values += [None] * (machine.registers - len(values))
        sp = values[machine.sp]
        if sp is None:
            return Unwound([pc], Reason.NO_REGISTERS, 0)
        walk = _Walk(self, pc, values, StackCopy(sp, stack), generated, is_exact=is_exact)
        return Unwound(walk.frames, walk.run(self._max_frames), walk.guessed)

    def rule(self, pc: int, *, exact: bool) -> Known:
        """The rules at a return address, or at an address itself (`exact`). Remembered.

        Raises:
            _Stop: nothing is mapped there.
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
        for bits in self._machine.address_bits:
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
            raise _Stop(Reason.UNKNOWN_MAPPING)
        file = None if mapping.file is None else self._files(mapping.file)
        if file is None:
            return Special.NO_RULE
        own = pc - mapping.bias & _WORD
        known = self._shared.find(mapping.file, own, exact=exact)
        if known is None:
            known = self._rule_of(file, own, exact=exact)
            known = self._shared.keep(mapping.file, own, known, exact=exact)
        return known

    def _rule_of(self, file: CodeFile, pc: int, *, exact: bool) -> Known:
        """The same, by the file's own address."""
        address = pc - (not exact) & _WORD
        if self._is_sigreturn(file, pc, self._machine.sigreturn_pcs):
            return Special.SIGRETURN
        row = file.row(address)
        if row is not None:
            if not (exact or row.is_signal or self._may_follow_call(file, address + 1)):
                return Special.UNSUPPORTED  # where libgcc jumps to: an exception handler
            return plan_of(row, self._machine)
        if exact and self._is_sigreturn(file, address, (len(self._machine.sigreturn),)):
            return Special.SIGRETURN  # a sample in the system call, which does not return here
        if file.function(address) is not None:
            return Special.UNSUPPORTED
        if exact and is_stub(file.code(address - STUB_BYTES, 2 * STUB_BYTES), self._machine):
            return Special.STUB
        depth = file.stack_depth(address)
        if depth in (DEPTH_ELSEWHERE, DEPTH_OUTERMOST):
            if exact:
                return Special.UNKNOWN_STACK
            return Special.OUTERMOST if depth == DEPTH_OUTERMOST else Special.ELSEWHERE
        if depth is not None and depth > 0 and not exact:
            if depth & DEPTH_NO_FRAME:
                return Special.NO_FRAME
            if depth & DEPTH_FRAME_ELSEWHERE:
                return Special.FRAME_ELSEWHERE
        if not exact and self._is_entry(file, address + 1):
            return Special.ENTRY
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
        return not before or ends_in_call(before, self._machine)

    def _is_sigreturn(self, file: CodeFile, address: int, distances: tuple[int, ...]) -> bool:
        """Return True if code is the call of rt_sigreturn(2), which has no rules, or wrong ones, in
        musl and in the vdso of arm64 before Linux 5.8 (commit 87676cfca141).
        """
        code = self._machine.sigreturn
        return any(
            address >= before and file.code(address - before, len(code)) == code
            for before in distances
        )


class _Walk:
    """One stack trace in the making.

    Attributes:
        frames, guessed: as in `Unwound`.
    """

    def __init__(
        self,
        unwinder: Unwinder,
        pc: int,
        registers: list[int | None],
        stack: StackCopy,
        generated: GeneratedCode | None,
        *,
        is_exact: bool,
    ) -> None:
        self.frames = [pc]
        self.guessed = 0
        self._guessed_at = -1
        self._unwinder = unwinder
        self._machine = unwinder._machine  # noqa: SLF001
        self._pc = pc
        self._exact = is_exact
        self._registers = registers
        self._stack = stack
        self._generated = generated

    def run(self, max_frames: int) -> Reason:
        """Step until the trace ends; why it does."""
        find = self._unwinder.rule if self._generated is None else self._rule
        frames = self.frames
        try:
            rule = find(self._pc, exact=self._exact)
            while True:
                caller = self._step(rule)
                if caller is None:
                    return Reason.FP_GUESS if self.guessed else Reason.COMPLETE
                if len(frames) >= max_frames:
                    return Reason.TOO_DEEP
                rule = find(caller, exact=self._exact)
                self._pc = caller
                frames.append(caller + (self._exact or rule is Special.ENTRY))
        except _Stop as stop:
            return stop.reason
        except OutsideError:
            return Reason.COPY_SHORT
        except ExpressionError:
            return Reason.RULE_UNSUPPORTED

    def _rule(self, pc: int, *, exact: bool) -> Known:
        """The rule at an address of a process that has generated code."""
        if self._generated is not None and self._generated.has(pc - (not exact)):
            return Special.GENERATED
        return self._unwinder.rule(pc, exact=exact)

    def _step(self, rule: Known) -> int | None:
        """Go to the caller; its address, or None if there is none."""
        if isinstance(rule, Plan):
            return self._by_plan(rule)
        if rule is Special.GENERATED:
            return self._by_generated()
        if rule is Special.SIGRETURN:
            return self._by_signal()
        if rule in (Special.ENTRY, Special.OUTERMOST):
            return None
        if rule is Special.UNKNOWN_STACK:
            raise _Stop(Reason.NO_UNWIND_INFO)
        if rule is Special.ELSEWHERE:  # a copy has one stack; BPF reads the other
            raise _Stop(Reason.COPY_SHORT)
        if rule is Special.NO_FRAME:
            return self._by_depth_alone()
        if rule is Special.FRAME_ELSEWHERE:
            sp, fp = self._registers[self._machine.sp], self._registers[self._machine.fp]
            return self._by_guess(sp or 0, fp, is_elsewhere=True)
        if rule is Special.STUB:
            return self._by_stub()
        if rule is Special.UNSUPPORTED:
            raise _Stop(Reason.RULE_UNSUPPORTED)
        return self._without_rule(is_frameless=rule is Special.FRAMELESS)

    def _by_plan(self, plan: Plan) -> int | None:
        if plan.ends:
            return None
        machine, old, word = self._machine, self._registers, self._stack.word
        sp = old[machine.sp]
        base = old[plan.base] if plan.base >= 0 else 0
        if sp is None or base is None:
            raise _Stop(Reason.RULE_UNSUPPORTED)
        cfa = base + plan.cfa & _WORD if plan.base >= 0 else self._cfa(plan.row)
        is_signal = plan.row.is_signal
        # A leaf may be empty where the return address is in a register: on arm64, and in vfork(2).
        is_empty_leaf = cfa == sp and plan.ra is None and self._exact
        if cfa <= sp and not is_signal and not is_empty_leaf:
            raise _Stop(Reason.RULE_UNSUPPORTED)
        caller = self._return_address(plan.row, cfa) if plan.ra is None else word(cfa + plan.ra)
        registers = old.copy()
        if is_signal:
            sp = 0
        elif self._exact:
            for number in self._unwinder.lost:
                registers[number] = None
        registers[machine.sp] = cfa
        for number, offset in plan.saved:
            if cfa + offset >= sp:  # or else it is popped already
                registers[number] = word(cfa + offset)
        for number, rule in plan.others:
            registers[number] = self._value(rule, number, cfa)
        self._registers = registers
        self._exact = is_signal
        if not (caller or is_signal):
            raise _Stop(Reason.NO_CALLER)
        return self._unwinder.strip(caller)

    def _cfa(self, row: Row) -> int:
        if row.cfa_register != CFA_EXPRESSION or not isinstance(row.cfa, bytes):
            raise _Stop(Reason.RULE_UNSUPPORTED)
        return evaluate(row.cfa, self._register, self._stack.read)

    def _return_address(self, row: Row, cfa: int) -> int:
        ra = row.registers.get(row.ra)
        if ra is None or (isinstance(ra, tuple) and ra[0] is How.SAME):
            # Only a leaf, which has called nothing, still has it in the register.
            if not self._machine.leaf_in_register or not self._exact:
                raise _Stop(Reason.RULE_UNSUPPORTED)
            value = self._register(row.ra)
        else:
            assert isinstance(ra, tuple)
            value = self._value(ra, row.ra, cfa)
        if value is None:
            raise _Stop(Reason.RULE_UNSUPPORTED)
        return value

    def _value(
        self, rule: tuple[How, int] | tuple[How, bytes], number: int, cfa: int
    ) -> int | None:
        """The value that a register has in the caller; None if it is lost."""
        how, argument = rule
        if how is How.SAME:
            return self._registers[number]
        if how is How.UNDEFINED:
            return None
        if isinstance(argument, int):
            return cfa + argument & _WORD if how is How.VALUE else self._register(argument)
        value = evaluate(argument, self._register, self._stack.read, cfa)
        return value if how is How.VALUE_EXPRESSION else self._stack.word(value)

    def _register(self, number: int) -> int | None:
        """A register of the current frame. On x86-64 the column of the return address is rip."""
        if number == self._machine.ra and not self._machine.leaf_in_register:
            return self._pc
        return self._registers[number] if 0 <= number < len(self._registers) else None

    def _by_signal(self) -> int:
        """Leave a frame that the kernel built for a signal handler."""
        machine = self._machine
        sp = self._registers[machine.sp]
        assert sp is not None
        values = [
            self._stack.word(sp + machine.signal_at + 8 * at)
            for at in range(len(machine.signal_registers))
        ]
        registers: list[int | None] = [None] * machine.registers
        for number, value in zip(machine.signal_registers, values, strict=True):
            if number < machine.registers:
                registers[number] = value
        self._registers = registers
        self._exact = True
        return values[machine.signal_pc]

    def _by_stub(self) -> int:
        """Leave a stub, which has no frame: the return address is still in the register."""
        caller = self._registers[self._machine.ra]
        if not caller:
            raise _Stop(Reason.RULE_UNSUPPORTED if caller is None else Reason.NO_CALLER)
        self._exact = False
        return self._unwinder.strip(caller)

    def _without_rule(self, *, is_frameless: bool) -> int | None:
        """Leave a frame of code that has no rule."""
        sp, fp = self._registers[self._machine.sp], self._registers[self._machine.fp]
        assert sp is not None
        if self._exact:
            depth = self._unwinder.stack_depth(self._pc)
            if depth is not None and depth >= 0:
                plain = depth & ~DEPTH_BITS
                if depth & DEPTH_FRAME_ELSEWHERE and fp != sp + plain - 8:
                    raise _Stop(Reason.NO_UNWIND_INFO)  # on which stack is not known
                return self._by_depth(sp, plain, fp)
            found = self._leaf_caller(sp, fp, is_frameless=is_frameless)
            if found is not None:
                self.guessed += 1
                return self._leave(*found)
        if is_frameless:
            raise _Stop(Reason.NO_UNWIND_INFO)
        return self._by_guess(sp, fp)

    def _leaf_caller(
        self, sp: int, fp: int | None, *, is_frameless: bool
    ) -> tuple[int, int | None, int] | None:
        """The CFA, frame pointer and return address of a leaf without a frame; None: it is none."""
        if self._machine is not X86_64 or not self._unwinder.code(self._pc, 1):
            return None
        try:
            first, second = self._stack.word(sp), self._stack.word(sp + 8)
        except OutsideError:
            return None
        target = self._called_from(first)
        if target is not None:
            if self._is_entered(target, is_frameless=is_frameless):
                return sp + 8, fp, first
            return None
        if is_frameless or first != fp:
            return None
        target = self._called_from(second)
        if not target or not self._is_entered(target, is_frameless=False, may_return=False):
            return None
        return sp + 16, fp, second

    def _called_from(self, word: int) -> int | None:
        """Return where the call before a word leads; 0: anywhere; None: there is no call."""
        before = self._unwinder.code(word - CALL_BYTES, CALL_BYTES)
        if not (
            self._unwinder.has_code(word - 1)
            and len(before) == CALL_BYTES
            and ends_in_call(before, self._machine)
        ):
            return None
        target = call_target(before, word)
        is_stub = target is not None and is_plt_stub(self._unwinder.code(target, STUB_BYTES))
        return 0 if target is None or is_stub else target

    def _is_entered(self, target: int, *, is_frameless: bool, may_return: bool = True) -> bool:
        """Return True if a called function is the one that runs, and has no frame yet."""
        code, pc = self._unwinder.code, self._pc
        ahead = look_ahead(code(pc, NEAR)) if may_return else Ahead.FREES_STACK
        if ahead is Ahead.RETURNS_SOON:
            return True
        size = pc - target
        if is_frameless:
            may_be = not target or 0 <= size < FAR
            return may_be and (not size or ahead is not Ahead.FREES_STACK)
        return bool(target) and 0 <= size < NEAR and not has_set_up(code(target, size))

    def _by_generated(self) -> int:
        """Leave a frame of generated code by its own form. Its caller is above it."""
        assert self._generated is not None
        number = len(self.frames) - 1
        state = FrameState(number, self._pc, self._exact, self._registers, self._stack.word)
        caller = self._generated.leave(state)
        sp = self._registers[self._machine.sp]
        if caller is None or sp is None or caller.sp <= sp:
            raise _Stop(Reason.NO_UNWIND_INFO)
        return self._leave(caller.sp, caller.fp, caller.pc)

    def _by_depth_alone(self) -> int:
        """Leave a frame of a function that keeps the frame pointer, but sets up no frame."""
        sp, fp = self._registers[self._machine.sp], self._registers[self._machine.fp]
        depth = self._unwinder.stack_depth(self._pc - 1)
        if sp is None or depth is None:
            raise _Stop(Reason.NO_UNWIND_INFO)
        self.guessed += 1
        return self._by_depth(sp, depth & ~DEPTH_BITS, fp)

    def _by_guess(self, sp: int, fp: int | None, *, is_elsewhere: bool = False) -> int | None:
        """Follow the frame pointer, if it looks like one; `is_elsewhere`: to another stack."""
        self.guessed += 1
        before, self._guessed_at = self._guessed_at, len(self.frames)
        if fp == 0 and before == len(self.frames) - 1:  # the end of a chain
            return None
        if not fp or (fp < sp and not is_elsewhere) or fp & 7:
            raise _Stop(Reason.NO_UNWIND_INFO)
        caller = self._stack.word(fp + 8)
        if not caller:  # no frame: fresh memory is 0, and an outermost frame is named by 0
            raise _Stop(Reason.NO_UNWIND_INFO)
        return self._leave(fp + 16, self._stack.word(fp), caller)

    def _by_depth(self, sp: int, depth: int, fp: int | None) -> int:
        """Leave a leaf that has only a stack depth: Go's functions."""
        machine = self._machine
        if machine.leaf_in_register:
            caller = self._registers[machine.ra] if not depth else self._stack.word(sp)
            if caller is None:
                raise _Stop(Reason.RULE_UNSUPPORTED)
            has_frame = depth and fp == sp - 8
            cfa = sp + depth
        else:
            caller = self._stack.word(sp + depth)
            has_frame = fp == sp + depth - 8
            cfa = sp + depth + 8
        if has_frame and fp is not None:
            fp = self._stack.word(fp)
        return self._leave(cfa, fp, caller)

    def _leave(self, cfa: int, fp: int | None, caller: int) -> int:
        machine = self._machine
        caller = self._unwinder.strip(caller)
        if not caller:
            raise _Stop(Reason.NO_CALLER)
        if not self._unwinder.has_code(caller - 1):
            raise _Stop(Reason.NO_UNWIND_INFO)
        self._registers = [None] * machine.registers
        self._registers[machine.sp] = cfa
        self._registers[machine.fp] = fp
        self._exact = False
        return caller
