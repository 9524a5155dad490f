"""`PerfEvents`: the same event on every CPU, opened, switched and closed as one."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Self, overload

from purebpf.closable import Closing
from purebpf.errors import KernelError
from purebpf.loader.host import cpus as cpu_numbers
from purebpf.loader.perf.perf_event import Event, PerfEvent, Reading

__all__ = ["PerfEvents"]


class PerfEvents(Closing, Sequence[PerfEvent]):
    """One event for each CPU, in the order of their numbers: `events[0].cpu`.

    The fallback for CPU cycles is chosen once, on the first CPU. A CPU that goes offline in between
    is skipped. Options are the same as for `PerfEvent.open`.
    """

    def __init__(self, events: Iterable[PerfEvent]) -> None:
        self._events = tuple(events)

    @classmethod
    def sampling(
        cls,
        frequency: int | None = None,
        period: int | None = None,
        *,
        cpus: Iterable[int] | None = None,
        **options: Any,
    ) -> Self:
        """Sample on each of `cpus`, by default those online: see `PerfEvent.sampling`.

        Raises:
            KernelError, ValueError, TypeError: as `PerfEvent.sampling`; nothing stays open.
        """
        event = options.pop("event", None)

        def on(cpu: int) -> PerfEvent:
            nonlocal event
            opened = PerfEvent.sampling(frequency, period, event=event, cpu=cpu, **options)
            event = opened.event
            return opened

        return cls._on_each(cpus, on)

    @classmethod
    def open(cls, event: Event | str, *, cpus: Iterable[int] | None = None, **options: Any) -> Self:
        """Open `event` on each of `cpus`, by default those online: see `PerfEvent.open`.

        Raises:
            KernelError, ValueError, TypeError: as `PerfEvent.open`; nothing stays open.
        """
        return cls._on_each(cpus, lambda cpu: PerfEvent.open(event, cpu=cpu, **options))

    @classmethod
    def _on_each(cls, cpus: Iterable[int] | None, on: Callable[[int], PerfEvent]) -> Self:
        with ExitStack() as undo:
            opened = []
            for cpu in cpu_numbers.online() if cpus is None else cpus:
                try:
                    opened.append(undo.enter_context(on(cpu)))
                except KernelError as error:
                    asked_for = cpus is not None or cpu in cpu_numbers.online()
                    if error.errno not in (errno.ENODEV, errno.EINVAL) or asked_for:
                        raise
            undo.pop_all()
        return cls(opened)

    @property
    def event(self) -> Event:
        """The event that is really counted, the same everywhere. Raises ValueError without any
        CPU.
        """
        if not self._events:
            raise ValueError("no CPU, no event")
        return self._events[0].event

    def enable(self) -> None:
        """Start every one, CPU after CPU."""
        for event in self._events:
            event.enable()

    def disable(self) -> None:
        """Stop every one, CPU after CPU."""
        for event in self._events:
            event.disable()

    def read(self) -> tuple[Reading, ...]:
        """The counts, in the order of the events."""
        return tuple([event.read() for event in self._events])

    @property
    def lost(self) -> int | None:
        """Records that found no room in the rings; None before Linux 6.0, which does not count."""
        counts = [reading.lost for reading in self.read()]
        readable = [count for count in counts if count is not None]
        return sum(readable) if len(readable) == len(counts) else None

    def close(self) -> None:
        """Close every one; again is harmless."""
        with ExitStack() as closing:
            for event in self._events:
                closing.callback(event.close)

    def __len__(self) -> int:
        return len(self._events)

    @overload
    def __getitem__(self, index: int) -> PerfEvent: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[PerfEvent, ...]: ...
    def __getitem__(self, index: int | slice) -> PerfEvent | tuple[PerfEvent, ...]:
        return self._events[index]

    def __iter__(self) -> Iterator[PerfEvent]:
        return iter(self._events)

    def __repr__(self) -> str:
        if not self._events:
            return "PerfEvents()"
        return f"PerfEvents({self.event.name} on {len(self)} CPUs)"
