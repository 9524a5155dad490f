"""The end of a stack trace. Every trace carries one, so that a cut trace never looks whole."""

from __future__ import annotations

from purebpf.enums import IntEnum

__all__ = ["Reason"]


class Reason(IntEnum):
    """The numbers go into BPF maps and files, so they never change; new ones go to the end."""

    COMPLETE = 0
    """Ended at a frame that a rule calls outermost, every step by a rule."""
    FINISHED = 1
    """The same, but user space had to finish what BPF could not."""
    FP_GUESS = 2
    """Ended at an outermost frame, but some steps followed frame pointers for lack of a rule."""
    NO_UNWIND_INFO = 3
    """Code without rules, where the frame pointer does not look like one."""
    UNKNOWN_MAPPING = 4
    """The next address is in no executable mapping: a wrong step, or new code."""
    RULE_UNSUPPORTED = 5
    """A rule that cannot be read, needs a register that is lost, or gives an impossible frame."""
    READ_FAULT = 6
    """A page of the stack that could not be read."""
    TOO_DEEP = 7
    """The limit of frames was reached; the leaf's side is kept."""
    COPY_SHORT = 8
    """The next frame lies outside the copied part of the stack."""
    COPY_LOST = 9
    """The copy was lost: its ring buffer was full."""
    COPY_REFUSED = 10
    """The budget of copies was spent."""
    PROCESS_UNKNOWN = 11
    """BPF had no list of the mappings of the process yet."""
    PROCESS_GONE = 12
    """The process ended before its mappings could be read."""
    TABLE_FULL = 13
    """The tables have no room left for this file or process."""
    NO_REGISTERS = 14
    """The sample came without user registers."""
    COMPAT32 = 15
    """A 32-bit task, followed by frame pointers only."""
    NOT_BUILT = 16
    """BPF had no window of rules for this code yet."""
    OVER_BUDGET = 17
    """The files of this process or user have used up what reading them may cost."""

    FRAME_POINTERS = 18
    """The kernel followed frame pointers: whether the last frame is the outermost is not known."""
    NO_CALLER = 19
    """The return address is 0, and no rule says that the function is the outermost one."""
    PYTHON_UNPLACED = 20
    """The order of Python and native frames is not known."""

    @property
    def is_whole(self) -> bool:
        """True if the trace reaches its outermost frame."""
        return self <= Reason.FP_GUESS
