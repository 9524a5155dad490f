"""Walks one copied stack, from its registers to its root, by complete call frame information.

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

from purebpf.unwind.compat32 import follow_frame_pointers
from purebpf.unwind.expression import ExpressionError, evaluate
from purebpf.unwind.generated import FrameState, GeneratedCode
from purebpf.unwind.leaf import FAR, NEAR, Ahead, call_target, has_set_up, is_plt_stub, look_ahead
from purebpf.unwind.machine import CALL_BYTES, I386, STUB_BYTES, X86_64, ends_in_call
from purebpf.unwind.plan import Known, Plan, Special
from purebpf.unwind.process_rules import EndOfTrace, ProcessRules
from purebpf.unwind.reason import Reason
from purebpf.unwind.rule import (
    CFA_EXPRESSION,
    DEPTH_BITS,
    DEPTH_FRAME_ELSEWHERE,
    DEPTH_INTERRUPTED,
    How,
    Row,
)
from purebpf.unwind.stack_copy import OutsideError, StackCopy

__all__ = ["StackWalk"]

_WORDS = {word: (1 << 8 * word) - 1 for word in (4, 8)}
"""The largest word, by its bytes."""


class StackWalk:
    """One stack trace in the making.

    Attributes:
        frames, guessed: as in `Unwound`.
    """

    def __init__(
        self,
        rules: ProcessRules,
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
        self._rules = rules
        self._machine = rules.machine
        self._most = _WORDS[rules.machine.word]
        self._pc = pc
        self._exact = is_exact
        self._registers = registers
        self._stack = stack
        self._generated = generated

    def run(self, max_frames: int) -> Reason:
        """Step until the trace ends; why it does."""
        find = self._rules.rule if self._generated is None else self._rule
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
        except EndOfTrace as stop:
            return stop.reason
        except OutsideError:
            return Reason.COPY_SHORT
        except ExpressionError:
            return Reason.RULE_UNSUPPORTED

    def _rule(self, pc: int, *, exact: bool) -> Known:
        """The rule at an address of a process that has generated code."""
        if self._generated is not None and self._generated.has(pc - (not exact)):
            return Special.GENERATED
        return self._rules.rule(pc, exact=exact)

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
            raise EndOfTrace(Reason.NO_UNWIND_INFO)
        if rule is Special.ELSEWHERE:  # a copy has one stack; BPF reads the other
            raise EndOfTrace(Reason.COPY_SHORT)
        if rule is Special.DEPTH:
            return self._by_depth_of_call()
        if rule is Special.FRAME_ELSEWHERE:
            sp, fp = self._registers[self._machine.sp], self._registers[self._machine.fp]
            return self._by_guess(sp or 0, fp, is_elsewhere=True)
        if rule is Special.STUB:
            return self._by_stub()
        if rule is Special.UNSUPPORTED:
            raise EndOfTrace(Reason.RULE_UNSUPPORTED)
        return self._without_rule(is_frameless=rule is Special.FRAMELESS)

    def _by_plan(self, plan: Plan) -> int | None:
        if plan.ends:
            return None
        machine, old, word = self._machine, self._registers, self._stack.word
        sp = old[machine.sp]
        base = old[plan.base] if plan.base >= 0 else 0
        if sp is None or base is None:
            raise EndOfTrace(Reason.RULE_UNSUPPORTED)
        cfa = base + plan.cfa & self._most if plan.base >= 0 else self._cfa(plan.row)
        is_signal = plan.row.is_signal
        # A leaf may be empty where the return address is in a register: on arm64, and in vfork(2).
        is_empty_leaf = cfa == sp and plan.ra is None and self._exact
        if cfa <= sp and not is_signal and not is_empty_leaf:
            raise EndOfTrace(Reason.RULE_UNSUPPORTED)
        caller = self._return_address(plan.row, cfa) if plan.ra is None else word(cfa + plan.ra)
        registers = old.copy()
        if is_signal:
            sp = 0
        elif self._exact:
            for number in self._rules.lost:
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
            raise EndOfTrace(Reason.NO_CALLER)
        return self._rules.strip(caller)

    def _cfa(self, row: Row) -> int:
        if row.cfa_register != CFA_EXPRESSION or not isinstance(row.cfa, bytes):
            raise EndOfTrace(Reason.RULE_UNSUPPORTED)
        return evaluate(row.cfa, self._register, self._read) & self._most

    def _return_address(self, row: Row, cfa: int) -> int:
        ra = row.registers.get(row.ra)
        if ra is None or (isinstance(ra, tuple) and ra[0] is How.SAME):
            # Only a leaf, which has called nothing, still has it in the register.
            if not self._machine.leaf_in_register or not self._exact:
                raise EndOfTrace(Reason.RULE_UNSUPPORTED)
            value = self._register(row.ra)
        else:
            assert isinstance(ra, tuple)
            value = self._value(ra, row.ra, cfa)
        if value is None:
            raise EndOfTrace(Reason.RULE_UNSUPPORTED)
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
            return cfa + argument & self._most if how is How.VALUE else self._register(argument)
        value = evaluate(argument, self._register, self._read, cfa) & self._most
        return value if how is How.VALUE_EXPRESSION else self._stack.word(value)

    def _read(self, address: int, size: int) -> int:
        """The number at an address that an expression computed; none is longer than a word."""
        return self._stack.read(address & self._most, min(size, self._machine.word))

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
            self._stack.word(sp + machine.signal_at + machine.word * at)
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
            raise EndOfTrace(Reason.RULE_UNSUPPORTED if caller is None else Reason.NO_CALLER)
        self._exact = False
        return self._rules.strip(caller)

    def _without_rule(self, *, is_frameless: bool) -> int | None:
        """Leave a frame of code that has no rule."""
        sp, fp = self._registers[self._machine.sp], self._registers[self._machine.fp]
        assert sp is not None
        if self._exact:
            depth = self._rules.stack_depth(self._pc)
            if depth is not None and depth >= 0:
                if depth & DEPTH_FRAME_ELSEWHERE and fp != sp + (depth & ~DEPTH_BITS) - 8:
                    raise EndOfTrace(Reason.NO_UNWIND_INFO)  # on which stack is not known
                return self._by_depth(sp, depth, fp)
            found = self._leaf_caller(sp, fp, is_frameless=is_frameless)
            if found is not None:
                self.guessed += 1
                return self._leave(*found)
        if is_frameless:
            raise EndOfTrace(Reason.NO_UNWIND_INFO)
        if self._machine is I386:  # few of its programs keep frame pointers
            callers = follow_frame_pointers(sp, fp or 0, self._stack)
            self.frames += callers
            self.guessed += len(callers)
            raise EndOfTrace(Reason.COMPAT32)
        return self._by_guess(sp, fp)

    def _leaf_caller(
        self, sp: int, fp: int | None, *, is_frameless: bool
    ) -> tuple[int, int | None, int] | None:
        """The CFA, frame pointer and return address of a leaf without a frame; None: it is none."""
        if self._machine is not X86_64 or not self._rules.code(self._pc, 1):
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
        before = self._rules.code(word - CALL_BYTES, CALL_BYTES)
        if not (
            self._rules.has_code(word - 1)
            and len(before) == CALL_BYTES
            and ends_in_call(before, self._machine)
        ):
            return None
        target = call_target(before, word)
        is_stub = target is not None and is_plt_stub(self._rules.code(target, STUB_BYTES))
        return 0 if target is None or is_stub else target

    def _is_entered(self, target: int, *, is_frameless: bool, may_return: bool = True) -> bool:
        """Return True if a called function is the one that runs, and has no frame yet."""
        code, pc = self._rules.code, self._pc
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
            raise EndOfTrace(Reason.NO_UNWIND_INFO)
        self.guessed += caller.is_guess
        return self._leave(caller.sp, caller.fp, caller.pc)

    def _by_depth_of_call(self) -> int:
        """Leave a frame of a function that has called, by the depth of its stack."""
        sp, fp = self._registers[self._machine.sp], self._registers[self._machine.fp]
        depth = self._rules.stack_depth(self._pc - 1)
        if sp is None or depth is None:
            raise EndOfTrace(Reason.NO_UNWIND_INFO)
        return self._by_depth(sp, depth, fp)

    def _by_guess(self, sp: int, fp: int | None, *, is_elsewhere: bool = False) -> int | None:
        """Follow the frame pointer, if it looks like one; `is_elsewhere`: to another stack."""
        self.guessed += 1
        before, self._guessed_at = self._guessed_at, len(self.frames)
        if fp == 0 and before == len(self.frames) - 1:  # the end of a chain
            return None
        if not fp or (fp < sp and not is_elsewhere) or fp & 7:
            raise EndOfTrace(Reason.NO_UNWIND_INFO)
        caller = self._stack.word(fp + 8)
        if not caller:  # no frame: fresh memory is 0, and an outermost frame is named by 0
            raise EndOfTrace(Reason.NO_UNWIND_INFO)
        return self._leave(fp + 16, self._stack.word(fp), caller)

    def _by_depth(self, sp: int, depth: int, fp: int | None) -> int:
        """Leave a function that has only a stack depth, with its marks: Go's."""
        machine, is_interrupted = self._machine, bool(depth & DEPTH_INTERRUPTED)
        depth &= ~DEPTH_BITS
        if machine.leaf_in_register:
            caller = self._registers[machine.ra] if not depth else self._stack.word(sp)
            if caller is None:
                raise EndOfTrace(Reason.RULE_UNSUPPORTED)
            has_frame = depth and fp == sp - 8
            cfa = sp + depth
        else:
            caller = self._stack.word(sp + depth)
            has_frame = fp == sp + depth - 8
            cfa = sp + depth + 8
        if has_frame and fp is not None:
            fp = self._stack.word(fp)
        caller = self._leave(cfa, fp, caller)
        self._exact = is_interrupted
        return caller

    def _leave(self, cfa: int, fp: int | None, caller: int) -> int:
        machine = self._machine
        caller = self._rules.strip(caller)
        if not caller:
            raise EndOfTrace(Reason.NO_CALLER)
        if not self._rules.has_code(caller - 1):
            raise EndOfTrace(Reason.NO_UNWIND_INFO)
        self._registers = [None] * machine.registers
        self._registers[machine.sp] = cfa
        self._registers[machine.fp] = fp
        self._exact = False
        return caller
