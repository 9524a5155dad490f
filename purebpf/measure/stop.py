"""Ctrl-C, SIGTERM, SIGHUP as a readable descriptor: they end a run instead of breaking it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Protocol, Self

from purebpf.closable import SoleOwner

__all__ = ["HasFileno", "Stop"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AT_ONCE = 4096


class HasFileno(Protocol):
    """An object to wait for: a `Stop`, a `Child`."""

    def fileno(self) -> int:
        """Its descriptor."""
        ...


class Stop(SoleOwner):
    """A context in which SIGINT, SIGTERM and SIGHUP make `fileno()` readable.

    The first signal asks the command to end and print. From then on SIGINT and SIGTERM have their
    earlier handlers, so that a second Ctrl-C quits while symbols are looked up. Another SIGHUP does
    nothing: when a terminal closes, the shell sends one and then the kernel. Use it in the main
    thread: others may not handle signals (signal.signal raises ValueError there).

    The interpreter writes to the descriptor when the signal arrives, not the handler: that runs
    only between two instructions of Python, and a poll(2) that began just after the signal would
    keep it waiting.
    """

    def __init__(self) -> None:
        self.signal = 0
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._previous = {number: signal.getsignal(number) for number in _SIGNALS}
        self._callbacks: list[Callable[[], object]] = []

    def fileno(self) -> int:
        """Readable once a signal has arrived."""
        return self._read

    def __bool__(self) -> bool:
        """Return True if a signal has arrived."""
        return self.signal != 0

    def __enter__(self) -> Self:
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in _SIGNALS:
            if self._previous[number] is not signal.SIG_IGN:  # nohup and `&` stay as they are
                signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._restore(_SIGNALS)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._read)
        os.close(self._write)

    def drop_others(self) -> bool:
        """Forget the signals that have arrived and end nothing, such as SIGWINCH.

        Those with a handler of Python make `fileno()` readable, too. Returns whether there were
        any; `fileno()` stays readable when a signal that ends the run has arrived.
        """
        try:
            arrived = os.read(self._read, _AT_ONCE)
        except BlockingIOError:
            return False
        if ending := [number for number in arrived if number in _SIGNALS]:
            os.write(self._write, bytes(ending[:1]))
        return len(ending) < len(arrived)

    @contextmanager
    def calling(self, callback: Callable[[], object]) -> Iterator[None]:
        """Call `callback` when a signal arrives in this context; at once, if one has already."""
        self._callbacks.append(callback)
        try:
            if self:
                callback()
            yield
        finally:
            self._callbacks.remove(callback)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.signal = self.signal or number
        self._restore((signal.SIGINT, signal.SIGTERM))
        for callback in self._callbacks:
            callback()

    def _restore(self, numbers: Iterable[signal.Signals]) -> None:
        for number in numbers:
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, self._previous[number])
