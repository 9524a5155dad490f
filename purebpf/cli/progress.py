"""A line on the terminal that says what goes on, and is taken back when something else is said."""

from __future__ import annotations

import io
import os
import sys
from _thread import allocate_lock
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["doing", "show_line", "take_back", "terminal"]

_PATIENCE_S = 1.0
_CLEAR_LINE = "\r\x1b[K"


_said: list[TextIO] = []
"""The terminal with such a line as its last, or nothing."""

_writing = allocate_lock()
"""Held while the line is written or taken back: a second thread writes it."""


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say `what` on standard error if it takes long, and take the word back when it is done.

    Only where standard error is a terminal: a log has no use for it.
    """
    stream = terminal()
    if stream is None:
        yield
        return
    import threading

    over = threading.Event()

    def say() -> None:
        if not over.wait(_PATIENCE_S):
            show_line(stream, f"{what} ...")

    speaker = threading.Thread(target=say)
    speaker.start()
    try:
        yield
    finally:
        over.set()
        speaker.join()
        take_back()


def terminal() -> TextIO | None:
    """Return standard error if it is a terminal, else None."""
    stream: TextIO | None = sys.stderr  # None where the descriptor is closed
    return stream if stream is not None and stream.isatty() else None


def show_line(stream: TextIO, line: str) -> None:
    """Show a line instead of the last one. Nothing in the background, or if the terminal is gone.

    A shell or another program writes to the terminal while this process is in the background.
    """
    with _writing:
        if not _is_in_foreground(stream):
            return
        try:
            stream.write(f"{_CLEAR_LINE}{line}" if _said else line)
            stream.flush()
        except OSError:
            return
        _said[:] = [stream]


def _is_in_foreground(stream: TextIO) -> bool:
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except io.UnsupportedOperation:  # a program's own sys.stderr
        return True
    except OSError:  # not the controlling terminal of this session
        return True


def take_back() -> None:
    """Clear the progress line, so that something else can be printed there."""
    if not _said:
        return
    with _writing:
        while _said:
            stream = _said.pop()
            stream.write(_CLEAR_LINE)
            stream.flush()
