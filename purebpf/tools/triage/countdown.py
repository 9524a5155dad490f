"""The seconds that a measurement still takes, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["countdown"]

_CLEAR_LINE = "\r\x1b[K"


@contextmanager
def countdown() -> Iterator[Callable[[float], None]]:
    """Yield a function that shows the seconds left; it does nothing where stderr is no terminal."""
    stream: TextIO | None = sys.stderr  # None where the descriptor is closed
    if stream is None or not stream.isatty():
        yield lambda _: None
        return
    seconds_shown: list[int] = []

    def show(left_s: float) -> None:
        left = round(left_s)
        if seconds_shown[-1:] == [left]:
            return
        seconds_shown.append(left)
        words = f"measuring the whole machine: {left} s" if left else "looking up names"
        stream.write(f"{_CLEAR_LINE}{words} (Ctrl-C: now)")
        stream.flush()

    try:
        yield show
    finally:
        if seconds_shown:
            stream.write(_CLEAR_LINE)
            stream.flush()
