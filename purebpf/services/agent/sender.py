"""Sends the windows of the spool to one sink, in a separate thread: sampling never waits for it."""

from __future__ import annotations

import gzip
import random
import threading
import time
import zlib
from collections.abc import Callable

from purebpf.errors import FormatError
from purebpf.services.agent.outcome import Delivery, Outcome
from purebpf.services.agent.spool import Spool

__all__ = ["Backoff", "Sender"]

_FIRST_S, _LONGEST_S = 1.0, 300.0
_BACKLOG_S = 0.25
_MOST_TRIES = 8
"""Of one window that the sink answers with an error of its own (500)."""


class Backoff:
    """The pauses after failures: full jitter, as many clients must not come back at once.

    Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """

    def __init__(self, uniform: Callable[[float, float], float] = random.uniform) -> None:
        self._uniform = uniform
        self.failures = 0

    def delay_s(self, at_least_s: float = 0.0) -> float:
        """Count a failure; seconds until the next try, which the server may have named."""
        limit_s = min(_LONGEST_S, _FIRST_S * 2**self.failures)
        self.failures = min(self.failures + 1, 16)
        return at_least_s + self._uniform(0, limit_s)


def _check(data: bytes) -> None:
    """Check that a file is a whole gzip member with content."""
    if not gzip.decompress(data):
        raise EOFError("it is empty")


class Sender:
    """Sends the newest window first, then the backlog, four a second.

    Args:
        name: of the sink, in the spool.
        sink: sends one window.
        spool: the waiting windows.
        jitter_s: how long a new window may wait, so that many agents do not send at once.
        max_age_s: older windows are dropped; 0: none.
        say: called with each error, once for each change.

    Attributes:
        sent: windows that the sink has.
        failed: tries that failed.
        refused: windows that it will not take.
        last_s: when the last one was sent, time.time(); 0: never.
    """

    def __init__(
        self,
        name: str,
        sink: Delivery,
        spool: Spool,
        *,
        jitter_s: float = 0.0,
        max_age_s: float = 0.0,
        say: Callable[[str], object] = print,
    ) -> None:
        self.name = name
        self.sent = self.failed = self.refused = 0
        self.last_s = 0.0
        self._sink, self._spool = sink, spool
        self._jitter_s, self._max_age_s, self._say = jitter_s, max_age_s, say
        self._backoff = Backoff()
        self._why = ""
        self._tries: tuple[str, int] = "", 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"sink {name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> None:
        """End; a request that is under way is abandoned."""
        self._over.set()
        self._spool.wake()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._over.is_set():
            if self._spool.newest(self.name) is None:
                self._spool.wait(self.name, self._over.is_set)
                self._over.wait(random.uniform(0, self._jitter_s))  # noqa: S311
                continue
            try:
                delay_s = self.send_one()
            except OSError as error:  # the spool cannot be read
                delay_s = self._failed(Outcome(why=str(error)))
            self._over.wait(delay_s)

    def send_waiting(self) -> None:
        """Send the waiting windows, up to the first failure."""
        failed = self.failed
        while self.failed == failed and self._spool.newest(self.name) is not None:
            self.send_one()

    def send_one(self) -> float:
        """Send the newest window; seconds until the next may follow."""
        name = self._spool.newest(self.name)
        data = None if name is None else self._spool.read(self.name, name)
        if name is None or data is None:
            return 0.0
        if self._is_too_old(name):
            self._spool.done(self.name, name, dropped=True)
            return 0.0
        try:
            _check(data)
            outcome = self._sink.send(name, data)
        except (FormatError, EOFError, OSError, zlib.error) as error:
            self._spool.set_aside(self.name, name)
            self._tell(f"sink {self.name}: {name} is damaged, and set aside: {error}")
            return 0.0
        if outcome.is_done:
            self._succeeded(name)
            return _BACKLOG_S
        if outcome.is_refused or self._is_hopeless(name, outcome):
            self.refused += 1
            self._spool.done(self.name, name, dropped=True)
            self._tell(f"sink {self.name} refused a window: {outcome.why}")
            return _BACKLOG_S
        return self._failed(outcome)

    def _succeeded(self, name: str) -> None:
        self.sent += 1
        self.last_s = time.time()
        self._spool.done(self.name, name)
        self._backoff.failures = 0
        if self._why:
            self._why = ""
            self._say(f"sink {self.name}: sends again")

    def _failed(self, outcome: Outcome) -> float:
        self.failed += 1
        self._tell(f"sink {self.name}: {outcome.why}; will try again")
        return self._backoff.delay_s(outcome.after_s)

    def _is_hopeless(self, name: str, outcome: Outcome) -> bool:
        if "HTTP 500" not in outcome.why:
            return False
        before, tries = self._tries
        self._tries = name, tries + 1 if name == before else 1
        return self._tries[1] >= _MOST_TRIES

    def _is_too_old(self, name: str) -> bool:
        oldest = time.gmtime(time.time() - self._max_age_s)
        return self._max_age_s > 0 and name < time.strftime("%Y%m%dT%H%M%SZ", oldest)

    def _tell(self, what: str) -> None:
        if what != self._why:
            self._why = what
            self._say(what)
