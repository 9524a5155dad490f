"""32-bit tasks of x86-64: their registers, and their frame pointers, where code has no rules.

Compilers of 32-bit code use the frame pointer for other numbers if they can, so that a chain of
them may lead past callers. No such trace is whole, wherever it ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.unwind.machine import X86_64
from purebpf.unwind.stack_copy import OutsideError, StackCopy

__all__ = ["compat_registers", "follow_frame_pointers"]

_WORD = (1 << 32) - 1
_PLACES = (0, 2, 1, 3, X86_64.sp, X86_64.fp, 4, 5)
"""DWARF's numbers on x86-64 of eax, ecx, edx, ebx, esp, ebp, esi and edi: in i386's order."""
_MOST = 126


def compat_registers(values: Sequence[int | None]) -> list[int | None]:
    """The registers of a task of x86-64 by the numbers that 32-bit code has for them."""
    words = [values[number] for number in _PLACES]
    return [None if word is None else word & _WORD for word in words]


def follow_frame_pointers(sp: int, fp: int, stack: StackCopy) -> list[int]:
    """Return the return addresses to which frame pointers lead, 126 at most.

    Args:
        sp: the stack pointer.
        fp: the frame pointer.
        stack: words of 4 bytes.
    """
    callers: list[int] = []
    try:
        while len(callers) < _MOST and fp >= sp and not fp & 3:
            caller = stack.word(fp + 4)
            if not caller:
                break
            callers.append(caller)
            sp, fp = fp + 8, stack.word(fp)
    except OutsideError:
        pass
    return callers
