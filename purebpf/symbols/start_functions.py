"""Functions below main() and below a thread's first: the same in all stacks."""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.late_pattern import compile_later
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["count_starts"]

_STARTS = compile_later(
    r"_start|__libc_start.*|start_thread|_{0,2}clone3?|_dl_start_user|thread_start"
)
_LIBRARY = compile_later(r"(libc|libpthread|ld-musl)[-.]")


def count_starts(stack: Sequence[object]) -> int:
    """Return how many frames at the root of a stack, innermost first, are start functions.

    Some of them have no name where debug packages are missing: functions of the C library that are
    not among its dynamic symbols, and the program's own `_start`.
    """
    count = 0
    for frame in reversed(stack):
        is_own = not count and len(stack) > 1 and _is_named(stack[-2])
        if not _is_named(frame) and not (_is_unnamed(frame) and (is_own or _is_of_library(frame))):
            break
        count += 1
    return count


def _is_named(frame: object) -> bool:
    return isinstance(frame, Frame) and _STARTS.fullmatch(frame.name) is not None


def _is_unnamed(frame: object) -> bool:
    return isinstance(frame, Unknown) or (isinstance(frame, Frame) and "!0x" in frame.name)


def _is_of_library(frame: object) -> bool:
    module = frame.module if isinstance(frame, Frame | Unknown) else ""
    return _LIBRARY.match(module.rpartition("/")[2]) is not None
