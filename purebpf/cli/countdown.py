"""The seconds that a run still takes, on a terminal."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING, TextIO

from purebpf.cli import progress

if TYPE_CHECKING:
    import threading

__all__ = ["counting_down"]

_SHORTEST_S = 2.0
"""Shorter runs are over before anybody wonders."""

_EVERY_S = 1.0


@contextmanager
def counting_down(
    duration_s: float | None, command: tuple[str, ...] = (), seen: Callable[[], str] = str
) -> Iterator[None]:
    """Show the seconds left while the context lasts, where standard error is a terminal.

    A run without a known end, and a run of a command, which has the terminal for itself, show
    nothing.

    Args:
        duration_s: seconds from now on; None: the end is not known.
        command: the command that runs meanwhile.
        seen: returns a few words about the results so far, "" for nothing.
    """
    stream = progress.terminal()
    if stream is None or duration_s is None or duration_s < _SHORTEST_S or command:
        yield
        return
    import threading

    over = threading.Event()
    ends_s = time.monotonic() + duration_s
    counter = threading.Thread(target=_count, args=(stream, over, ends_s, seen), daemon=True)
    _start_without_signals(counter)
    try:
        yield
    finally:
        over.set()
        counter.join()
        progress.take_back()


def _start_without_signals(thread: threading.Thread) -> None:
    """Start a thread that receives no signals: the main thread waits for them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _count(stream: TextIO, over: threading.Event, ends_s: float, seen: Callable[[], str]) -> None:
    while not over.wait(_EVERY_S):
        left = ceil(ends_s - time.monotonic())
        if left <= 0:
            return
        words = ", ".join(word for word in (f"{left} s left", seen()) if word)
        progress.show_line(stream, f"{words} (Ctrl-C: end now)")
