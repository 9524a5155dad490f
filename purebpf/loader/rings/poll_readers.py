# ruff: noqa: SLF001 -- waits as Reader.read does, for several of them
"""Several rings in one thread."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Protocol, TypeVar

from purebpf.loader.rings.readers import Reader
from purebpf.loader.rings.waiters import LONGEST_S

__all__ = ["poll"]


class _Ring(Protocol):
    """A map with its own reader, as `Map.read` uses it."""

    def _own_reader(self) -> Reader[Any]: ...


_Source = TypeVar("_Source", bound=Reader[Any] | _Ring)


def poll(*sources: _Source, timeout: float | None = None) -> Iterator[tuple[_Source, Any]]:
    """The records of several rings as they come, each with the map or reader that it came from.

        opens, execs = obj.maps["opens"], obj.maps["execs"]
        for source, record in purebpf.poll(opens, execs, timeout=1.0):
            ...

    Records of one ring take turns with the other rings': their order between rings is not the order
    of the events. `break` loses nothing.

    Args:
        sources: ring buffers and perf event arrays, or readers of them.
        timeout: seconds, as of `Reader.read`; None: for ever; 0 does not wait.

    Raises:
        FormatError, OSError, ValueError: as `Reader.read`.
    """
    readers: list[Reader[Any]] = [
        source if isinstance(source, Reader) else source._own_reader() for source in sources
    ]
    deadline = None if timeout is None else time.monotonic() + timeout
    over = False
    with ExitStack() as stack:
        events = [stack.enter_context(reader._waiters.wake_event()) for reader in readers]
        while not over:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            over = left == 0
            for source, reader in zip(sources, readers, strict=True):
                for record in reader.drain():
                    yield source, record
            if not over:
                waiting = select.poll()
                numbers = [wake_event.fileno() for wake_event in events]
                numbers += [reader.fileno() for reader in readers]
                for number in numbers:
                    waiting.register(number, select.POLLIN)
                waiting.poll(None if left is None else min(left, LONGEST_S) * 1000)
