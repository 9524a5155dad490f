"""`CopiedJava`: the Java frames of a stack that was copied, and is walked in user space."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from purebpf.runtimes.hotspot.frames import JavaFrame, JavaFrames
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
    """

    def __init__(
        self,
        walk: JavaFrames | JavaScriptFrames,
        number: Callable[[tuple[JavaFrame | JavaScriptFrame, ...]], int],
        *,
        is_old: bool,
    ) -> None:
        self._walk = walk
        self._number = number
        self._is_old = is_old

    def has(self, address: int) -> bool:
        """Return True if an address is in the runtime's code."""
        return self._walk.has(address)

    def leave(self, frame: FrameState) -> Caller | None:
        """Return the caller of a frame; None: it is not known."""
        return None if self._is_old else self._walk.leave(frame)

    def with_words(self, frames: Sequence[int]) -> list[int]:
        """Return the addresses of a trace, with words for its Java frames."""
        found = self._walk.found
        return [
            self._number(tuple(found[at])) if at in found else address
            for at, address in enumerate(frames)
        ]
