"""The agent: windows of samples, one after the other, into the spool; senders empty that.

with Agent(config) as agent:
    while not agent.wait(signals):      # True: something in `signals` is readable
        agent.end_window()
    agent.stop()
"""

from __future__ import annotations

import gc
import os
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from purebpf.closable import Closing
from purebpf.errors import PurebpfError
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.measure.stop import HasFileno
from purebpf.services.agent.budget import Rate, Step
from purebpf.services.agent.config import Config, Metrics
from purebpf.services.agent.facts import Cost
from purebpf.services.agent.host_lock import HostLock
from purebpf.services.agent.notify import notify
from purebpf.services.agent.sender import Sender
from purebpf.services.agent.sinks import make_sink
from purebpf.services.agent.spool import Spool
from purebpf.services.agent.window_clock import Span, WindowClock
from purebpf.services.agent.window_writer import WindowWriter
from purebpf.syscall.heap import map_large_blocks, trim_heap
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.profile.windows import WindowProfiler

if TYPE_CHECKING:
    from purebpf.results import Profile
    from purebpf.services.agent.metrics.exporter import Exporter
    from purebpf.services.agent.metrics.families import State
    from purebpf.services.agent.waits import Waits

__all__ = ["Agent"]

_GC_THRESHOLDS = (10_000, 20, 20)
"""To look for cycles, which it hardly makes, takes 7 % of its time at (700, 10, 10)."""
_LOOK_S = 5.0
"""How often it looks at the clock, and says to the watchdog that it lives."""


class Agent(Closing):
    """Measures from when its context is entered.

    Args:
        config: the measurement and the sinks.
        say: called with events, a line each.
        is_once: the window is whole, wherever on the wall clock it begins; `stop` sends it, not a
            background thread.

    Attributes:
        spool, senders: the written windows, and their senders.
        last_profile: the last window's profile, with its losses, once the agent was stopped.

    Raises, when it is entered; nothing stays open then:
        SecondAgentError: another agent runs on this host.
        PurebpfError: the kernel refused something.
        KernelError: the agent may not create the spool, or it is another user's.
    """

    def __init__(
        self, config: Config, say: Callable[[str], object] = print, *, is_once: bool = False
    ) -> None:
        self._config, self._say, self._is_once = config, say, is_once
        self.last_profile: Profile | None = None
        self._last_window = "nothing was measured"
        self._owned = ExitStack()
        self._ended = 0
        self._rate = Rate(config.cpu.frequency, config.agent.budget)
        self._burst_until_s = 0.0
        self._waits_bpf_ns = 0
        self._profiler: WindowProfiler | None = None
        self._waits: Waits | None = None
        self.senders: list[Sender] = []
        self._exporter: Exporter | None = None

    def __enter__(self) -> Self:
        config = self._config
        map_large_blocks()
        gc.set_threshold(*_GC_THRESHOLDS)
        with ExitStack() as stack:
            lock = stack.enter_context(HostLock())
            if lock.problem:
                self._say(lock.problem)
            self.spool = Spool(
                os.path.join(config.agent.state, "spool"),
                [sink.name for sink in config.sinks],
                max_bytes=config.spool.max_mb << 20,
                max_age_s=3600 * config.spool.max_hours,
            )
            self._writer = WindowWriter(config, self.spool, self._say)
            for sink in config.sinks:
                sender = Sender(
                    sink.name,
                    make_sink(sink),
                    self.spool,
                    jitter_s=config.agent.jitter_s,
                    max_age_s=sink.max_age_s,
                    say=self._say,
                )
                self.senders.append(sender)
            stack.callback(self._stop_measuring)
            self._step, self._is_due = self._wanted_step(), True
            self._start_sampling()
            self._clock = WindowClock(config.agent.window_s, is_once=self._is_once)
            self._start_waits()
            if config.metrics != Metrics():
                from purebpf.services.agent.metrics.exporter import Exporter

                self._exporter = stack.enter_context(
                    Exporter(config.metrics, config.agent.window_s, self._state)
                )
                self._writer.counts = self._exporter.counts
            self._cpu_ns = time.process_time_ns()
            for sender in self.senders if not self._is_once else ():
                sender.start()
                stack.callback(sender.stop)
            self._owned = stack.pop_all()
        return self

    # Windows

    def wait(self, *ends: HasFileno) -> bool:
        """Sleep until the window is over, or one of `ends` is readable; whether one of them is.

        They are looked at even where the next window is over before the last one is written.
        """
        from purebpf.measure import wait

        if wait.until(None, ends, pause=time.monotonic()):
            return True
        while (left_s := self._clock.left_s()) > 0:
            notify("WATCHDOG=1")
            at_most_s = min(left_s, _LOOK_S)
            if self._profiler is None:
                if wait.until(None, ends, pause=time.monotonic() + at_most_s):
                    return True
                continue
            until_look_s = self._profiler.looks_at_s - time.monotonic()
            if self._profiler.wait(*ends, at_most_s=max(0.0, min(at_most_s, until_look_s))):
                return True
            self._look(self._profiler)
        return False

    def _look(self, profiler: WindowProfiler) -> None:
        try:
            profiler.look_if_due()
        except (PurebpfError, OSError) as error:
            self._say(f"waits are looked at no more: {error}")
            profiler.stop_waits()

    def end_window(self, *, is_last: bool = False) -> None:
        """Write the window that is over, and begin the next.

        Raises:
            KernelError: a map could not be read.
        """
        step, profiler, waits = self._step, self._profiler, self._waits
        was_sampled = self._is_sampled
        self._step = self._wanted_step()
        self._choose()
        restarts = self._step.frequency != step.frequency or not self._is_due
        span = self._clock.end()
        profile, bpf_ns = None, 0
        if profiler is not None:
            self._write_looks(span, profiler)
            last = is_last or restarts
            profile = profiler.window(is_last=last, pause=not self._is_sampled)
        if profile is not None:
            bpf_ns = profile.cost["run_time_ns"]
        if was_sampled and profile is not None and profiler is not None:
            self._last_window = f"{profile.total} samples in {span.duration_ns / 1e9:.1f} s"
            self._writer.write_cpu(span, profile, step, profiler.cgroup_text)
        self.last_profile = profile if is_last else None
        del profile  # its memory is given back below
        if restarts and not is_last:
            self._stop_sampling()
        if self._profiler is None and self._is_due and not is_last:
            self._start_sampling()
        if waits is not None:
            self._write_waits(span, waits, step)
        if not is_last:
            self._start_waits()
            if profiler is not None and self._is_sampled and not restarts:
                profiler.resume()
        self._account(span, bpf_ns, is_fresh=self._step != step)

    def burst(self) -> None:
        """Sample at the higher frequency for some minutes, from the next window on."""
        self._burst_until_s = time.monotonic() + self._config.cpu.burst_s
        self._say(
            f"burst: {self._config.cpu.burst_frequency} Hz for {self._config.cpu.burst_s:g} s"
        )

    def stop(self) -> None:
        """Write the last window, and end. Raises as `end_window`."""
        with self._owned:
            self.end_window(is_last=True)
            for sender in self.senders if self._is_once else ():
                sender.send_waiting()

    def describe_window(self) -> str:
        """Return a line about the last window, and the waiting ones."""
        waiting = [
            f"{sender.name} {self.spool.waiting(sender.name)} waiting" for sender in self.senders
        ]
        return ", ".join((self._last_window, *waiting))

    def close(self) -> None:
        """End without the last window; again is harmless."""
        self._owned.close()

    # What is written

    def _write_looks(self, span: Span, profiler: WindowProfiler) -> None:
        """Write the waits that were looked at, before `profiler` forgets their processes."""
        if not profiler.has_waits:
            return
        try:
            profile = profiler.waits()
        except (PurebpfError, OSError) as error:
            self._writer.lose(f"waits of a window are lost: {error}")
            profiler.stop_waits()
            return
        known = {"looks": profile.cost["run_cnt"]}
        self._writer.write_waits(span, profile, profiler.cgroup_text, known)

    def _write_waits(self, span: Span, waits: Waits, step: Step) -> None:
        """Write the waits that were traced."""
        try:
            traced = waits.window()
        except PurebpfError as error:
            self._writer.lose(f"waits of a window are lost: {error}")
            self._stop_waits()
            return
        self._waits_bpf_ns = traced.profile.cost["run_time_ns"]
        known = {"probability_ppm": round(1e6 * self._config.wait.probability / step.every)}
        self._writer.write_waits(span, traced.profile, traced.cgroup_text, known)

    # What is measured

    @property
    def _is_bursting(self) -> bool:
        return time.monotonic() < self._burst_until_s

    def _wanted_step(self) -> Step:
        return Step(self._config.cpu.burst_frequency) if self._is_bursting else self._rate.step

    def _choose(self) -> None:
        """Choose if the next window is sampled."""
        is_due = self._rate.is_due()
        self._is_due = is_due or self._is_bursting
        happens = self._is_bursting or _happens(self._config.cpu.probability)
        self._is_sampled = self._is_due and happens

    def _start_sampling(self) -> None:
        self._is_sampled = True
        cpu = self._config.cpu
        if not cpu.enabled:
            return
        options = ProfileOptions(
            frequency=self._step.frequency, call_graph=cpu.call_graph, python=cpu.python
        )
        profiler = WindowProfiler(options, with_addresses=False)
        profiler.__enter__()
        self._profiler = profiler
        if self._config.wait.enabled and self._config.wait.samples:
            profiler.sample_waits(self._config.wait.frequency)

    def _start_waits(self) -> None:
        kind = self._config.wait
        traces = kind.enabled and not kind.samples
        if not (traces and self._is_due and _happens(kind.probability)):
            self._stop_waits()
        elif self._waits is not None:
            self._waits.resume()
        else:
            from purebpf.services.agent.waits import Waits

            self._waits = Waits(kind)

    def _stop_sampling(self) -> None:
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            profiler.close()

    def _stop_measuring(self) -> None:
        self._stop_sampling()
        self._stop_waits()

    def _stop_waits(self) -> None:
        waits, self._waits = self._waits, None
        if waits is not None:
            waits.close()

    def _account(self, span: Span, bpf_ns: int, *, is_fresh: bool) -> None:
        """Charge the cost of the window, and set the rate."""
        kernel_btf.cache_clear()  # 7 MB, which starts need
        trim_heap()  # to name a window takes some 20 MB that the next minute does not need
        before, self._cpu_ns = self._cpu_ns, time.process_time_ns()
        bpf_ns, self._waits_bpf_ns = bpf_ns + self._waits_bpf_ns, 0
        cost = Cost(self._cpu_ns - before, bpf_ns, _rss_bytes(), self.spool.nbytes)
        self._writer.cost = cost
        self._export(cost)
        self._ended += 1
        if is_fresh or self._is_bursting or self._ended == 1:
            return
        step, share = self._rate.step, cost.share(span.duration_ns)
        self._rate.spent(share)
        self._writer.rate_reduced = self._rate.reduced
        if self._rate.step != step:
            self._say(f"{100 * share:.2f} % of a CPU: {self._rate.step} instead of {step}")
            notify(f"STATUS=samples at {self._rate.step}, by its budget")

    # What is shown

    def _export(self, cost: Cost) -> None:
        """The window is over for metrics, too."""
        if self._exporter is None:
            return
        self._exporter.counts.add_cost(cost.cpu_ns, cost.bpf_ns)
        try:
            self._exporter.window()
        except (PurebpfError, OSError) as error:
            self._say(f"metrics of a window are lost: {error}")

    def _state(self) -> State:
        """For a scrape, in its thread."""
        from purebpf.services.agent.metrics.families import Pushes, State

        pushes = [
            Pushes(sender.name, sender.sent, sender.failed, sender.refused, sender.last_s)
            for sender in self.senders
        ]
        spool = self.spool
        step = self._step
        frequency = step.frequency if self._is_sampled else 0
        dropped = spool.dropped + self._writer.lost
        return State(frequency, step.every, spool.nbytes, dropped, spool.corrupt, pushes)


def _happens(probability: float) -> bool:
    return probability >= 1 or random.random() < probability  # noqa: S311


def _rss_bytes() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
