"""`Countdown`: the seconds that a measurement still takes, on a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self, TextIO

__all__ = ["Countdown"]


class Countdown:
    """Writes to standard error where that is a terminal, else nothing."""

    def __init__(self) -> None:
        stream: TextIO | None = sys.stderr
        self._stream = stream if stream is not None and stream.isatty() else None
        self._shown = -1

    def __enter__(self) -> Self:
        return self

    def show(self, left_s: float) -> None:
        """Say how long it takes from now on."""
        left = round(left_s)
        if self._stream is None or left == self._shown:
            return
        self._shown = left
        words = f"measuring the whole machine: {left} s" if left else "looking up names"
        self._stream.write(f"\r\x1b[K{words} (Ctrl-C: now)")
        self._stream.flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._stream is not None and self._shown >= 0:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
