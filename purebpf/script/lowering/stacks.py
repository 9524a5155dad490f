"""Stacks of the kernel and of the user: their numbers, which user space turns into frames."""

from __future__ import annotations

from purebpf.asm import R0, R1, R2, R3, R4, R6
from purebpf.script import tree
from purebpf.script.lowering.aggregates import Aggregates
from purebpf.script.lowering.frame import Place, calls_user_stack
from purebpf.script.lowering.layout import LOST_STACKS, STACKS
from purebpf.script.types import Type

__all__ = ["Stacks"]

_EFAULT = 14


class Stacks(Aggregates):
    """Generates the code of `kstack` and `ustack`."""

    _user_stack: Place | None = None

    def kernel_stack(self) -> None:
        """R0 = the number of the current kernel stack, below zero if there is none."""
        code, stored = self.code, self.code.label()
        self.context.uses_stacks = True
        code.copy(R1, R6)
        code.map(R2, STACKS)
        code.move(R3, 0)
        code.call_helper("get_stackid", R1, R2, R3)
        code.jump("s>=", R0, 0, stored)
        code.jump("==", R0, -_EFAULT, stored)
        mark = self.mark()
        kept = self.keep()
        self.add_to_global(LOST_STACKS, 1)
        code.load(R0, *kept, 8)
        self.release(mark)
        code.place(stored)

    def kernel_stack_length(self, type_: Type) -> None:
        """R0 = the number of functions in the current kernel stack, 0 if it cannot be read."""
        code, read, mark = self.code, self.code.label(), self.mark()
        most = type_.numbers[0]
        place = self.take(8 * most)
        code.copy(R1, R6)
        self.address(R2, place)
        code.move(R3, 8 * most)
        code.move(R4, 0)
        code.call_helper("get_stack", R1, R2, R3, R4)
        code.jump("s>=", R0, 0, read)
        code.move(R0, 0)
        code.place(read)
        code.alu(">>=", R0, 3)
        self.release(mark)

    def prepare_user_stack(self) -> None:
        """Walk the user's stack now, if a function that the kernel calls needs it.

        The walk needs all frames of a call chain but the program's own.
        """
        is_needed = any(
            isinstance(node, tree.For)
            and isinstance(node.source, tree.Map)
            and calls_user_stack(node.body)
            for node in tree.walk(self.unit.probe)
        )
        if is_needed:
            self._walk_user_stack()
            self._user_stack = self.keep()

    def _walk_user_stack(self) -> None:
        """R0 = the number of the current user stack, of `purebpf.stacks`."""
        self.context.walks_user_stacks = True
        self.code.copy(R1, R6)
        self.code.call_extern("user_stack")

    def store_user_stack(self, place: Place) -> None:
        """Put the number of the user's stack and the process into memory."""
        if self._user_stack is None:
            self._walk_user_stack()
        else:
            self.code.load(R0, *self.outer_place(self._user_stack), 8)
        self.code.store(place.base, place.offset, R0, 8)
        self.store_pid(place.add(8))

    def store_pid(self, place: Place) -> None:
        """Put the number of the current process into memory."""
        self.task_number(is_process=True)
        self.code.store(place.base, place.offset, R0, 8)
