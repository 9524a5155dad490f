"""From registers and a copied stack to a whole stack trace, by complete call frame information."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from purebpf.tuples import NamedTuple
from purebpf.unwind.generated import GeneratedCode
from purebpf.unwind.machine import Machine
from purebpf.unwind.process_rules import ProcessRules
from purebpf.unwind.reason import Reason
from purebpf.unwind.shared_rules import SharedRules
from purebpf.unwind.stack_copy import StackCopy
from purebpf.unwind.stack_walk import StackWalk

if TYPE_CHECKING:
    from purebpf.unwind.code_lookup import FileLookup, Space

__all__ = ["MAX_FRAMES", "Unwinder", "Unwound"]

MAX_FRAMES = 1024
"""Of a stack that is unwound from a copy; what programs and the kernel walk ends at 127."""


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


class Unwinder(ProcessRules):
    """Unwinds the stacks of one process.

    Args:
        machine: its registers.
        space: its mappings.
        files: finds the rules of a mapped file.
        max_frames: how long a trace can be.
        shared: rules by file and address, for all processes that have the same files.
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
        super().__init__(machine, space, files, shared)
        self._max_frames = max_frames

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
        machine = self.machine
        values = list(registers[: machine.registers])
        values += [None] * (machine.registers - len(values))
        sp = values[machine.sp]
        if sp is None:
            return Unwound([pc], Reason.NO_REGISTERS, 0)
        copy = StackCopy(sp, stack, machine.word)
        walk = StackWalk(self, pc, values, copy, generated, is_exact=is_exact)
        return Unwound(walk.frames, walk.run(self._max_frames), walk.guessed)
