"""`Attachments`: links that end together.

The kernel waits for an RCU grace period whenever a program leaves a perf event, and again whenever
the event of a tracepoint or probe is closed: 10 to 50 ms each, or half a minute for 360
tracepoints. Programs can leave at the same time, from several threads; events close one by one.
"""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from typing import TypeVar

from purebpf.closable import Closing
from purebpf.loader.programs.link import EventDescriptor, Link, take_event

__all__ = ["Attachments"]

_MOST_THREADS, _FEW = 64, 4
"""Threads that close links; links that one of them closes sooner than others are started."""

_Owned = TypeVar("_Owned", bound=Closing)


class Attachments(Closing):
    """Many links and their companions, such as events that several links share."""

    def __init__(self) -> None:
        self._links: deque[Link] = deque()
        self._others = ExitStack()
        self._events = ExitStack()

    def own(self, owned: _Owned) -> _Owned:
        """Own something that is closed when this ends."""
        if isinstance(owned, Link):
            self._links.append(owned)
        else:
            self._others.callback(owned.close)
        return owned

    def end(self) -> None:
        """Close the others, then the links: no program runs any more. Their events stay open."""
        links, self._links = self._links, deque()
        try:
            self._others.close()
        finally:
            for event in _end(links):
                self._events.callback(event.close)

    def close(self) -> None:
        """End, and close the events."""
        with self._events:
            self.end()


def _end(links: deque[Link]) -> list[EventDescriptor]:
    """Close links from several threads, and return the events that they owned."""
    events: list[EventDescriptor] = []

    def work() -> None:
        while True:
            try:
                link = links.pop()
            except IndexError:
                return
            if (event := take_event(link)) is not None:
                events.append(event)

    count = min(_MOST_THREADS, len(links) // _FEW) - 1
    threads = []
    if count > 0:
        from threading import Thread  # most sessions have one link, or some

        threads = [Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    return events
