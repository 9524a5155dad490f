"""Counts that are drained from the kernel while sampling goes on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from purebpf.loader.maps.map import Map
from purebpf.observe.instruments import stack_maps
from purebpf.observe.unwind.user_stacks import Trace

if TYPE_CHECKING:
    from purebpf.tools.profile.finished_counts import FinishedCounts
    from purebpf.tools.profile.timeline import Timeline

__all__ = ["CountsSnapshot"]

_MANY = 64
"""Stacks that are read one by one; more are read with the whole map, in batches."""


class CountsSnapshot:
    """The counts since the last drain, and in all.

    Stacks stay in the kernel, which compares with them.

    Attributes:
        last: (struct count_key, samples) of the last `take`.
        all: samples by struct count_key, of every one.
        traces: the program's stacks by number.
        processes: the ones with counted samples.
        dropped: samples of stacks beyond `limit`.
    """

    def __init__(
        self,
        counts: Map,
        stacks: Map,
        limit: int,
        finished: FinishedCounts | None = None,
        timeline: Timeline | None = None,
    ) -> None:
        self.last: list[tuple[Any, int]] = []
        self.all: Counter[Any] = Counter()
        self.traces: dict[int, Trace] = {}
        self.processes: set[int] = set()
        self.dropped = 0
        self._counts = counts
        self._stacks = stacks
        self._limit = limit
        self._finished = finished
        self._timeline = timeline
        self._without_time: set[Any] = set()

    def take(self) -> None:
        """Drain the counts.

        Raises:
            KernelError: a map could not be read.
        """
        self.last = self._counts.drain()
        if self._finished is not None:
            self.last += self._finished.take()
        kept = []
        for key, samples in self.last:
            own = self._timeline.place(key) if self._timeline else key
            if own not in self.all and self._is_beyond_limit(own):
                self.dropped += samples
                continue
            self.all[own] += samples
            kept.append((own, samples))
        self.last = kept
        if self._timeline:
            self.all = self._timeline.thin(self.all)
        self.processes.update(key.tgid for key, _ in kept)
        self._read({number for key, _ in kept for number in (key.user_stack, key.kernel_stack)})

    def _is_beyond_limit(self, key: Any) -> bool:
        if self._timeline is None:
            return len(self.all) >= self._limit
        stacks, stack = self._without_time, key._replace(slot=0)
        if stack not in stacks and len(stacks) >= self._limit:
            return True
        stacks.add(stack)
        return False

    def _read(self, numbers: set[int]) -> None:
        unread = numbers - self.traces.keys()
        if len(unread) > _MANY:
            self.traces = stack_maps.traces(self._stacks)
            return
        for number in unread:
            stack = self._stacks.get(number)
            if stack is not None:  # else it is one of enum stack_id, or user space finished it
                self.traces[number] = stack_maps.trace(stack)
