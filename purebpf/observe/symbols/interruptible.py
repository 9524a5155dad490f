"""Ctrl-C while names are looked up: stop that, and print the result so far."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from purebpf.symbols.budget import Budget

__all__ = ["interruptible"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_QUIT: dict[signal.Signals, Callable[[int, FrameType | None], object] | signal.Handlers] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}


@contextmanager
def interruptible(budget: Budget) -> Iterator[None]:
    """Return a context in which the first SIGINT or SIGTERM ends naming: the remaining frames stay
    unnamed.

    The next one quits. In other threads than the main one, which may
    not handle signals, nothing changes.

    Args:
        budget: of those who look names up in the context.
    """
    previous = {number: signal.getsignal(number) for number in _SIGNALS}
    ours = {number for number in _SIGNALS if previous[number] is not signal.SIG_IGN}

    def stop(_number: int, _frame: FrameType | None) -> None:
        budget.stop()
        for number in ours:
            signal.signal(number, _QUIT[number])

    try:
        for number in ours:
            signal.signal(number, stop)
    except ValueError:  # another thread than the main one
        ours.clear()
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, previous[number])
