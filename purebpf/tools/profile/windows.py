"""Profiles of one window after the other, for sessions that sample for weeks.

    with WindowProfiler(ProfileOptions(frequency=19)) as profiler:
        while not profiler.wait(ends, at_most_s=60):
            profile = profiler.window()
        profile = profiler.window(is_last=True)

Memory belongs to a window: entries without a part in it are dropped. Nothing is lost in between:
the events pause during the drain of the counts, so that the windows add up to all counted samples,
and the pause is in no window's expected samples. A copied stack that was not finished when its
window ended belongs to the next one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Container
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

from purebpf.loader.maps.map import Map
from purebpf.measure.process_watch import name_stacks
from purebpf.measure.targets import PidNamespace
from purebpf.observe.instruments import stack_maps
from purebpf.observe.unwind.user_stacks import Trace
from purebpf.tools.profile.counts_snapshot import CountsSnapshot
from purebpf.tools.profile.finished_counts import FinishedCounts
from purebpf.tools.profile.session import Profiler

if TYPE_CHECKING:
    from purebpf.observe.symbols.symbolizer import Symbolizer
    from purebpf.results import Profile
    from purebpf.tools.profile.wait_samples import WaitSampler

__all__ = ["WindowProfiler"]

_MOST_WAITING = 12 << 20
"""Bytes of copied stacks that may wait: 700, half a minute of two busy CPUs at 19 Hz."""


class WindowCounts(CountsSnapshot):
    """The counts and stacks of a window; data of the window before is dropped.

    It empties both maps, so no program may run while it takes.

    Args:
        counts, stacks, limit, finished: as `CountsSnapshot`.
    """

    def __init__(
        self, counts: Map, stacks: Map, limit: int, finished: FinishedCounts | None = None
    ) -> None:
        super().__init__(counts, stacks, limit, finished)
        self._earlier: dict[int, Trace] = {}

    def take(self) -> None:
        """Drain the counts, and forget the earlier ones. Raises as `CountsSnapshot`."""
        self.all.clear()
        self.processes.clear()
        if self._finished is not None:
            self._finished.forget()
        super().take()
        waiting = set() if self._finished is None else self._finished.waiting_kernel_stacks()
        self._earlier = {number: self.traces[number] for number in waiting & self.traces.keys()}

    def forget(self) -> None:
        """Forget the window, once it has a profile, but for stacks that copies that wait have."""
        self.last = []
        self.all.clear()
        self.traces = self._earlier

    def _read(self, numbers: set[int]) -> None:  # noqa: ARG002
        """Read all stacks, including copies that still wait to be unwound."""
        own = {number: stack_maps.trace(stack) for number, stack in self._stacks.drain()}
        self.traces = {**self._earlier, **own}


class WindowProfiler(Profiler):
    """A `Profiler` that gives a profile of each window, and forgets it.

    Args:
        *args: as `Profiler`.
        with_addresses: as the attribute of `Symbolizer`.
        **keywords: as `Profiler`.
    """

    _counters: dict[str, int]

    def __init__(self, *args: Any, with_addresses: bool = True, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._with_addresses = with_addresses
        self._before: dict[str, int] = {}
        self._is_paused = self._is_last = False
        self._waits: WaitSampler | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        if self._sampling.walking is not None:
            self._sampling.walking.most_waiting = _MOST_WAITING
        return self

    def window(
        self,
        *,
        is_last: bool = False,
        pause: bool = False,
        least: int = 0,
        pids: Container[int] | None = None,
    ) -> Profile:
        """Return the profile since the last window ended.

        Args:
            is_last: there is no other one: finish every stack.
            pause: sample nothing until `resume`.
            least: samples that a process must have for its stacks to be named.
            pids: of the last window: the processes of which copied stacks are unwound; None: all.

        Raises:
            KernelError: a map could not be read.
        """
        sampling, self._is_last = self._sampling, is_last
        sampling.drain()  # most of it, before the pause
        python = sampling.python
        is_crowded = python is not None and python.names.is_crowded
        sampling.events.disable()
        times_s = sampling.times_s()  # finishing takes its time, in which nothing is sampled
        try:
            if sampling.walking is not None and (is_last or is_crowded):
                sampling.walking.wanted = pids
                sampling.walking.finish()
            self.take()
            self._elapsed_s, self._idle_s = times_s
            self._note_counters()
            if python is not None and is_crowded:
                python.drain()
                for name in ("python_codes", "python_functions"):
                    sampling.loaded.maps[name].clear()
                sampling.loaded.globals["python_number"] = 0
        finally:
            self._begin(is_paused=is_last or pause)
        assert self._taken is not None
        try:
            return self._profile(_without_small(self._taken.last, least))
        finally:
            self._forget(names=is_crowded)

    def sample_waits(
        self,
        frequency: float,
        *,
        by_thread: bool = False,
        share: float | None = None,
        longest_s: float | None = None,
    ) -> None:
        """From now on, also look where threads wait: `look_if_due`, `waits`.

        Args:
            frequency: looks a second, at most.
            by_thread: tell threads apart, and the system calls that they are in.
            share: of a CPU that looks may take; None: little, for weeks.
            longest_s: between two looks, whatever they cost; None: a minute.

        Raises:
            KernelError: the kernel refused the program.
        """
        from purebpf.tools.profile.wait_samples import WaitSampler

        limits = {"share": share, "longest_s": longest_s}
        more = {name: value for name, value in limits.items() if value is not None}
        self._waits = WaitSampler(
            self._sampling, frequency, PidNamespace.own(), by_thread=by_thread, **more
        )

    def stop_waits(self) -> None:
        """Look no more; again is harmless."""
        waits, self._waits = self._waits, None
        if waits is not None:
            waits.close()

    @property
    def has_waits(self) -> bool:
        """True if it samples waiting threads."""
        return self._waits is not None

    @property
    def looks_at_s(self) -> float:
        """When the next look is due, in seconds of time.monotonic(); infinite: never."""
        return self._waits.due_s if self._waits else float("inf")

    def look_if_due(self) -> None:
        """Look where threads wait, if that is due. Raises as `WaitSampler.look`."""
        if self._waits is not None and time.monotonic() >= self._waits.due_s:
            self._sampling.drain()  # stacks are named by what processes have mapped by now
            self._waits.look()

    def waits(self) -> Profile:
        """Return the waits of threads since the last call of this, in nanoseconds.

        Call it before `window`, which forgets ended threads. Raises as `WaitSampler.look`.
        """
        assert self._waits is not None
        with self._symbolizer.batch():
            profile = self._waits.window(partial(name_stacks, symbolizer=self._symbolizer))
        profile.file_ids = self._symbolizer.file_ids
        return profile

    def close(self) -> None:
        """End it without a result, and release its resources; again is harmless."""
        self.stop_waits()
        super().close()

    def resume(self) -> None:
        """Sample again; the time of the pause is in no window."""
        if self._is_paused:
            self._begin(is_paused=False)

    def _begin(self, *, is_paused: bool) -> None:
        """Begin a window, or a pause."""
        self._is_paused = is_paused
        self._sampling.note_start()
        if not is_paused:
            self._sampling.events.enable()

    def _make_snapshot(self) -> CountsSnapshot:
        maps, limit = self._sampling.loaded.maps, self._options.hash_storage_size
        counts, stacks = maps["counts"], maps["stacks"]
        return WindowCounts(counts, stacks, limit, self._finished)

    def _note_counters(self) -> None:
        """Take the counters of the window, which goes on in the kernel."""
        now, before = super()._read_counters(), self._before
        self._counters = {name: count - before.get(name, 0) for name, count in now.items()}
        self._before = now

    def _read_counters(self) -> dict[str, int]:
        return self._counters.copy()

    @property
    def _is_read(self) -> bool:
        """True for the last window: to look for hints takes 6 % of all time."""
        return self._is_last

    @cached_property
    def _symbolizer(self) -> Symbolizer:
        symbolizer = super()._symbolizer
        symbolizer.with_addresses = self._with_addresses
        if not self._with_addresses:
            symbolizer.keep_file_ids()
        return symbolizer

    def _forget(self, *, names: bool) -> None:
        """Forget data of processes that are gone or had no part in this window."""
        assert isinstance(self._taken, WindowCounts)
        kept = self._taken.processes
        if self._waits is not None:
            kept = kept | self._waits.processes
            if names:
                self._waits.forget()
        self._symbolizer.forget_but(kept)
        self._taken.forget()
        sampling = self._sampling
        if sampling.walking is not None:
            sampling.walking.rest()
        if sampling.python is not None:
            sampling.python.interpreters.forget_but(sampling.watch.followed.spaces.processes)
            if names:
                sampling.python.names.forget()


def _without_small(counts: list[tuple[Any, int]], least: int) -> list[tuple[Any, int]]:
    """Return the counts, with empty stacks for processes with fewer samples than `least`."""
    if not least:
        return counts
    samples: Counter[int] = Counter()
    for key, count in counts:
        samples[key.tgid] += count
    return [
        (key if samples[key.tgid] >= least else key._replace(user_stack=0, kernel_stack=0), count)
        for key, count in counts
    ]
