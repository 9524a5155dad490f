"""Stacks of 32-bit tasks of x86, as far as their frame pointers lead.

Their code has rules, but for registers that a sample of a 64-bit kernel has under other names, and
such programs are rare. So no such trace is whole, wherever it ends.
"""

from __future__ import annotations

from purebpf.unwind.reason import Reason
from purebpf.unwind.stack_copy import OutsideError, StackCopy
from purebpf.unwind.unwinder import MAX_FRAMES, Unwound

__all__ = ["follow_frame_pointers"]

_WORD = (1 << 32) - 1


def follow_frame_pointers(
    pc: int, sp: int, fp: int, stack: bytes, *, max_frames: int = MAX_FRAMES
) -> Unwound:
    """The trace of a 32-bit task.

    Args:
        pc: the address of the instruction that runs next.
        sp: the stack pointer.
        fp: the frame pointer.
        stack: the bytes at the stack pointer and above.
        max_frames: how long the trace can be.
    """
    sp, fp = sp & _WORD, fp & _WORD
    copy = StackCopy(sp, stack)
    frames = [pc]
    try:
        while len(frames) < max_frames and fp >= sp and not fp & 3:
            caller = copy.read(fp + 4, 4)
            if not caller:
                break
            frames.append(caller)
            sp, fp = fp + 8, copy.read(fp, 4)
    except OutsideError:
        pass
    return Unwound(frames, Reason.COMPAT32, len(frames) - 1)
