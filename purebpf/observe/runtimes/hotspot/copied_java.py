"""`CopiedJava`: the Java frames of a stack that was copied, and is walked in user space."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from purebpf.runtimes.hotspot.frames import UNKNOWN_METHOD, VIRTUAL, JavaFrame, JavaFrames
from purebpf.runtimes.v8.frames import JavaScriptFrames
from purebpf.runtimes.v8.javascript_frame import JavaScriptFrame
from purebpf.unwind.generated import Caller, FrameState

__all__ = ["CopiedJava"]


class CopiedJava:
    """See `purebpf.unwind.generated.GeneratedCode`.

    Args:
        walk: leaves and names the frames.
        number: returns the word for the functions of a frame.
        is_old: True: the copy was made so long ago that its frames are not left.
        is_unchanged: returns False if names that were read may be of other methods than those of
            the stack.
    """

    def __init__(
        self,
        walk: JavaFrames | JavaScriptFrames,
        number: Callable[[tuple[JavaFrame | JavaScriptFrame, ...]], int],
        *,
        is_old: bool,
        is_unchanged: Callable[[], bool] = lambda: True,
    ) -> None:
        self._walk = walk
        self._number = number
        self._is_old = is_old
        self._is_unchanged = is_unchanged

    def has(self, address: int) -> bool:
        """Return True if an address is in the runtime's code."""
        return self._walk.has(address)

    def leave(self, frame: FrameState) -> Caller | None:
        """Return the caller of a frame; None: it is not known."""
        return None if self._is_old else self._walk.leave(frame)

    def with_words(self, frames: Sequence[int]) -> list[int]:
        """Return the addresses of a trace, with words for its Java frames."""
        found = self._walk.found
        is_named = self._is_unchanged()
        return [
            self._number(tuple(found[at] if is_named else _unnamed(found[at])))
            if at in found
            else address
            for at, address in enumerate(frames)
        ]


def _unnamed(frames: Sequence[JavaFrame | JavaScriptFrame]) -> list[JavaFrame | JavaScriptFrame]:
    """Return the frames of a place without the names of its methods."""
    return [
        each._replace(name=UNKNOWN_METHOD, file="", line=0)
        if isinstance(each, JavaFrame) and each.is_method and each.name != VIRTUAL
        else each
        for each in frames
    ]
