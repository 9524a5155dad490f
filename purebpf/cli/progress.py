"""A progress word for work that takes longer than a second; only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["doing", "take_back"]

_PATIENCE_S = 1.0
_CLEAR_LINE = "\r\x1b[K"


_said: list[TextIO] = []
"""The terminal with such a word as its last line, or None."""


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say `what` on standard error if it takes long, and take the word back when it is done.

    Only where standard error is a terminal: a log has no use for it.
    """
    stream: TextIO | None = sys.stderr  # None where the descriptor is closed
    if stream is None or not stream.isatty():
        yield
        return
    import threading

    over = threading.Event()

    def say() -> None:
        if not over.wait(_PATIENCE_S):
            _said.append(stream)
            stream.write(f"{what} ...")
            stream.flush()

    speaker = threading.Thread(target=say)
    speaker.start()
    try:
        yield
    finally:
        over.set()
        speaker.join()
        take_back()


def take_back() -> None:
    """Clear the progress line, so that something else can be printed there."""
    while _said:
        stream = _said.pop()
        stream.write(_CLEAR_LINE)
        stream.flush()
