"""The end of a user stack, and the mark of a stack that is not whole."""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.symbols.frame import Address, Frame, Unknown
from purebpf.tuples import NamedTuple
from purebpf.unwind.reason import Reason

__all__ = [
    "CUT",
    "WHOLE",
    "StackEnd",
    "cut_mapping",
    "end_of",
    "end_of_merged",
    "is_cut",
    "is_cut_frame",
    "is_root",
    "merge_mark",
    "reason_in_path",
    "root_frame",
]

CUT = "cut"
"""The kind of the frame at the root of a stack that lacks its own."""

_UNVERIFIED = "unverified"
_SHOWN = {
    Reason.NO_UNWIND_INFO: "[no unwind info]",
    Reason.UNKNOWN_MAPPING: "[unknown mapping]",
    Reason.RULE_UNSUPPORTED: "[rule]",
    Reason.READ_FAULT: "[unreadable]",
    Reason.TOO_DEEP: "[truncated]",
    Reason.NO_CALLER: "[no caller]",
    Reason.PYTHON_UNPLACED: "[Python frames not placed]",
}
_FRAMES = {
    **{reason.name.lower(): _SHOWN.get(reason, "[cut]") for reason in Reason},
    _UNVERIFIED: "[unverified]",
}
_CUT_FRAMES = frozenset(_FRAMES.values())
_REASONS = {reason.name.lower(): reason for reason in Reason} | {_UNVERIFIED: Reason.FRAME_POINTERS}
_MERGED = "merged"
"""The kind of a frame that stands for the end of a stack until `end_of_merged` takes it off."""
_CALLERS_MISSING = Frame("[native callers missing]", 0, "", Address(0), CUT)
_PATH = "[cut: {}]"
_PATHS = {_PATH.format(name): reason for name, reason in _REASONS.items()}
_PAGE = 4096
_BY_FRAME_POINTERS = (Reason.FRAME_POINTERS, Reason.COMPAT32, Reason.NO_REGISTERS)

_ROOTS = frozenset(
    {
        # of glibc and musl: a process, and a thread
        *("_start", "__libc_start_main", "__libc_start_call_main", "__libc_start_main_impl"),
        *("_start_c", "clone", "__clone", "clone3", "__clone3", "start_thread", "start"),
        *("thread_start", "_dl_start_user", "__clone_internal"),
        # of Go
        *("_rt0_amd64", "_rt0_amd64_linux", "_rt0_arm64_linux", "runtime.rt0_go"),
        *("runtime.goexit", "runtime.mstart", "runtime.mcall"),
    }
)
"""Functions that no other one calls: without unwind tables, only they say that a stack is whole."""


class StackEnd(NamedTuple):
    """The kinds of ends of a user stack.

    Attributes:
        cut: why it lacks its roots, a name of `purebpf.unwind.reason.Reason` in lower case;
            "unverified" where frame pointers were followed to a function that another one may have
            called; "" for a whole stack.
        guessed: frames that followed frame pointers for lack of a rule.
    """

    cut: str = ""
    guessed: int = 0


WHOLE = StackEnd()


def end_of(reason: int, guessed: int, root: Frame | Unknown | None) -> StackEnd:
    """Return the end of a stack, by the walk's reason and by its last frame."""
    why = Reason(reason)
    if why.is_whole:
        return StackEnd("", guessed)
    if why not in _BY_FRAME_POINTERS:
        return StackEnd(why.name.lower(), guessed)
    return StackEnd("" if is_root(root) else _UNVERIFIED, guessed)


def is_root(frame: Frame | Unknown | None) -> bool:
    """Return True if no other function calls this one."""
    name = frame.name.partition("@")[0].removesuffix(".abi0") if isinstance(frame, Frame) else ""
    return name in _ROOTS


def merge_mark(ending: str) -> Frame:
    """Return the frame that marks the end of a merged stack.

    Args:
        ending: "base": with the first Python frame of a separate stack; "outside": with the first
            Python frame of the thread, native callers are missing; "unknown": the order of native
            and Python frames is unknown.
    """
    return Frame(ending, 0, "", Address(0), _MERGED)


def end_of_merged(
    stack: Sequence[Frame | Unknown], end: StackEnd
) -> tuple[Sequence[Frame | Unknown], StackEnd]:
    """Return a stack without the mark of its merge, and how it ended.

    Args:
        stack: innermost first.
        end: how its native frames ended.
    """
    if not stack or not isinstance(stack[-1], Frame) or stack[-1].kind != _MERGED:
        return stack, end
    ending, stack = stack[-1].name, tuple(stack[:-1])
    if ending == "unknown":
        return stack, end if end.cut else StackEnd(Reason.PYTHON_UNPLACED.name.lower(), end.guessed)
    return (stack if ending == "base" else (*stack, _CALLERS_MISSING)), StackEnd("", end.guessed)


def root_frame(end: StackEnd) -> tuple[Frame, ...]:
    """Return the frame that replaces the missing roots of a stack; nothing if it is whole."""
    if not end.cut:
        return ()
    return (Frame(_FRAMES[end.cut], 0, "", Address(0), CUT),)


def cut_mapping(end: StackEnd) -> tuple[str, int]:
    """Return the mark of that frame in a file of addresses: a mapping, and its begin.

    Readers without its name show the mapping. It takes a page of those that no process maps
    (vm.mmap_min_addr, 65,536) as far as there are some.
    """
    return _PATH.format(end.cut), _PAGE * (1 + _REASONS[end.cut])


def reason_in_path(path: str) -> Reason | None:
    """Why a stack is cut that ends in such a mapping; None: it is another one."""
    return _PATHS.get(path)


def is_cut(name: str) -> bool:
    """Return True if this is a name of `StackEnd.cut`."""
    return name in _FRAMES


def is_cut_frame(name: str) -> bool:
    """Return True if this is the name of a frame from `root_frame`."""
    return name in _CUT_FRAMES
