"""The agent: windows of samples, one after the other, into the spool; senders empty that.

with Agent(config) as agent:
while not agent.wait(signals):      # True: something in `signals` is readable
agent.end_window()
agent.stop()
"""

from __future__ import annotations

import gzip
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from purebpf import __version__
from purebpf.agent.budget import Rate, Step
from purebpf.agent.config import Config, Metrics
from purebpf.agent.facts import Cost, facts_of
from purebpf.agent.host_lock import HostLock
from purebpf.agent.name_shares import NameShares
from purebpf.agent.notify import notify
from purebpf.agent.processes import Executables, user_of
from purebpf.agent.rows import off_cpu, on_cpu, run_queue
from purebpf.agent.sender import Sender
from purebpf.agent.services import PodNames, Services
from purebpf.agent.sinks import make_sink
from purebpf.agent.spool import Spool, file_name
from purebpf.agent.window_clock import Span, WindowClock
from purebpf.closable import Closing
from purebpf.errors import PurebpfError
from purebpf.kernel.types.kernel_btf import kernel_btf
from purebpf.measure.stop import HasFileno
from purebpf.profile.request import Options
from purebpf.profile.windows import WindowProfiler
from purebpf.results.formats.otlp import Attribute, Series, Window, document
from purebpf.results.formats.otlp_series import Weighted, series_of
from purebpf.syscall.heap import map_large_blocks, trim_heap

if TYPE_CHECKING:
    from purebpf.agent.metrics.exporter import Exporter
    from purebpf.agent.metrics.families import State
    from purebpf.agent.waits import Waits
    from purebpf.results import Labels, Profile

__all__ = ["Agent"]

_LOOK_S = 5.0
"""How often it looks at the clock, and says to the watchdog that it lives."""
_MOST_SERVICES, _MOST_OF_USER = 2048, 256
"""Of a window; the hub takes 4,096."""
_SECOND_NS = 1_000_000_000


class Agent(Closing):
    """Measures from when its context is entered.

    Args:
        config: what, and where it goes.
        say: gets what happens, a line each.
        is_once: what is written is sent by `stop`, not in the background.

    Attributes:
        spool, senders: what is written, and who sends it.
        windows: written so far.
        last_profile: that of the last window, with what it lost, once the agent was stopped.

    Raises, when it is entered; nothing stays open then:
        SecondAgentError: another agent runs on this host.
        PurebpfError: the kernel refused something.
        KernelError: the spool cannot be made, or is another user's.
    """

    def __init__(
        self, config: Config, say: Callable[[str], object] = print, *, is_once: bool = False
    ) -> None:
        self._config, self._say, self._is_once = config, say, is_once
        self.last_profile: Profile | None = None
        self._last_window = "nothing was measured"
        self._start_id = os.urandom(4).hex()
        self._owned = ExitStack()
        self._number = 0
        self.windows = self.lost_windows = 0
        self._rate = Rate(config.cpu.frequency, config.agent.budget)
        self._burst_until_s = 0.0
        self._cost = Cost()
        self._waits_bpf_ns = 0
        self._executables = Executables()
        self._users: dict[str, int] = {}
        host = config.agent.host or os.uname().nodename
        self._pods = PodNames(config.agent.pod_logs)
        self._services = Services(config.services, config.labels, host, self._pods)
        self._profiler: WindowProfiler | None = None
        self._waits: Waits | None = None
        self.senders: list[Sender] = []
        self._exporter: Exporter | None = None

    def __enter__(self) -> Self:
        config = self._config
        map_large_blocks()
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
            self._clock = WindowClock(config.agent.window_s)
            self._start_waits()
            if config.metrics != Metrics():
                from purebpf.agent.metrics.exporter import Exporter

                self._exporter = stack.enter_context(
                    Exporter(config.metrics, config.agent.window_s, self._state)
                )
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
            self._write_cpu(span, profile, step, profiler)
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
        """A line about the last window, and what waits."""
        waiting = [
            f"{sender.name} {self.spool.waiting(sender.name)} waiting" for sender in self.senders
        ]
        return ", ".join((self._last_window, *waiting))

    def close(self) -> None:
        """End without the last window; again is harmless."""
        self._owned.close()

    # What is written

    def _write_cpu(
        self, span: Span, profile: Profile, step: Step, profiler: WindowProfiler
    ) -> None:
        frequency, probability = step.frequency, self._config.cpu.probability / step.every
        self._last_window = f"{profile.total} samples in {span.duration_ns / 1e9:.1f} s"
        window = Window(
            "samples", "count", span.started_ns, span.duration_ns,
            round(_SECOND_NS / (frequency * probability)),
        )  # fmt: skip
        known = {"frequency_hz": frequency, "probability_ppm": round(1e6 * probability)}
        series = self._series(on_cpu(profile), profiler.cgroup_text)
        self._write("cpu", window, series, self._facts(profile, span, known))

    def _write_looks(self, span: Span, profiler: WindowProfiler) -> None:
        """Write the waits that were looked at, before `profiler` forgets their processes."""
        if not profiler.has_waits:
            return
        try:
            profile = profiler.waits()
        except (PurebpfError, OSError) as error:
            self._lose_waits(error)
            profiler.stop_waits()
            return
        known = {"looks": profile.cost["run_cnt"]}
        self._write_profile_of_waits(span, profile, profiler.cgroup_text, known)

    def _write_waits(self, span: Span, waits: Waits, step: Step) -> None:
        try:
            traced = waits.window()
        except PurebpfError as error:
            self._lose_waits(error)
            self._stop_waits()
            return
        self._waits_bpf_ns = traced.profile.cost["run_time_ns"]
        known = {"probability_ppm": round(1e6 * self._config.wait.probability / step.every)}
        self._write_profile_of_waits(span, traced.profile, traced.cgroup_text, known)

    def _lose_waits(self, error: Exception) -> None:
        self.lost_windows += 1
        self._say(f"waits of a window are lost: {error}")

    def _write_profile_of_waits(
        self, span: Span, profile: Profile, cgroup_text: Callable[[int], str], known: dict[str, int]
    ) -> None:
        kinds = (("offcpu", "off_cpu", off_cpu), ("runqueue", "run_queue", run_queue))
        for kind, name, rows in kinds:
            window = Window(name, "nanoseconds", span.started_ns, span.duration_ns)
            series = self._series(rows(profile), cgroup_text)
            self._write(kind, window, series, self._facts(profile, span, known))
            del series  # two of them take twice as much

    def _series(self, rows: Iterator[Weighted], text: Callable[[int], str]) -> list[Series]:
        self._pods.read()
        shares = NameShares(_MOST_SERVICES, _MOST_OF_USER)
        self._users = {}

        def resource(labels: Labels) -> tuple[Attribute, ...]:
            cgroup = text(labels.pid)
            process = self._executables.describe(labels.pid, labels.process_name, cgroup)
            user = user_of(labels.pid, cgroup)
            admitted = self._services.admit(shares, self._services.resource(process), user)
            self._users.setdefault(str(admitted[0][1]), user)
            return admitted

        return series_of(rows, resource)

    def _facts(self, profile: Profile, span: Span, known: dict[str, int]) -> tuple[Attribute, ...]:
        agent: dict[str, str | int] = {
            "start_id": self._start_id,
            "rate_reduced": self._rate.reduced,
            "dropped_windows": self.spool.dropped + self.lost_windows,
            "corrupt_windows": self.spool.corrupt,
            "clock_step_ns": span.step_ns,
        }
        return facts_of(profile, self._cost, {**agent, **known})

    def _write(
        self, kind: str, window: Window, series: list[Series], facts: tuple[Attribute, ...]
    ) -> None:
        name = file_name(window.started_ns, kind, self._start_id, self._number)
        self._number += 1
        window = window._replace(facts=facts, identity=os.urandom(16))
        if self._exporter is not None:
            counts = self._exporter.counts
            counts.add_window(kind, window.period_ns, series, dict(facts), self._users)
        series = series or [Series(self._services.nothing(), {})]
        data = gzip.compress(document(window, series, __version__), 4, mtime=0)
        try:
            if self.spool.add(name, data):
                self.windows += 1
            else:
                self._say(f"{name} is lost: the disk of the spool is full")
        except OSError as error:
            self.lost_windows += 1
            self._say(f"{name} is lost: {error}")

    # What is measured

    @property
    def _is_bursting(self) -> bool:
        return time.monotonic() < self._burst_until_s

    def _wanted_step(self) -> Step:
        return Step(self._config.cpu.burst_frequency) if self._is_bursting else self._rate.step

    def _choose(self) -> None:
        """Whether the next window is one of those that are sampled."""
        is_due = self._rate.is_due()
        self._is_due = is_due or self._is_bursting
        happens = self._is_bursting or _happens(self._config.cpu.probability)
        self._is_sampled = self._is_due and happens

    def _start_sampling(self) -> None:
        self._is_sampled = True
        cpu = self._config.cpu
        if not cpu.enabled:
            return
        options = Options(
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
            from purebpf.agent.waits import Waits

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
        """What the window cost, and what the rate is to be."""
        kernel_btf.cache_clear()  # 7 MB, which starts need
        trim_heap()  # to name a window takes some 20 MB that the next minute does not need
        before, self._cpu_ns = self._cpu_ns, time.process_time_ns()
        bpf_ns, self._waits_bpf_ns = bpf_ns + self._waits_bpf_ns, 0
        rss = _rss_bytes()
        self._cost = Cost(self._cpu_ns - before, bpf_ns, rss, self.spool.nbytes)
        self._export()
        if is_fresh or self._is_bursting or not self._number > 1:
            return
        step, share = self._rate.step, self._cost.share(span.duration_ns)
        self._rate.spent(share)
        if self._rate.step != step:
            self._say(f"{100 * share:.2f} % of a CPU: {self._rate.step} instead of {step}")
            notify(f"STATUS=samples at {self._rate.step}, by its budget")

    # What is shown

    def _export(self) -> None:
        """The window is over for metrics, too."""
        if self._exporter is None:
            return
        self._exporter.counts.add_cost(self._cost.cpu_ns, self._cost.bpf_ns)
        try:
            self._exporter.window()
        except (PurebpfError, OSError) as error:
            self._say(f"metrics of a window are lost: {error}")

    def _state(self) -> State:
        """For a scrape, in its thread."""
        from purebpf.agent.metrics.families import Pushes, State

        pushes = [
            Pushes(sender.name, sender.sent, sender.failed, sender.refused, sender.last_s)
            for sender in self.senders
        ]
        spool = self.spool
        step = self._step
        frequency = step.frequency if self._is_sampled else 0
        dropped = spool.dropped + self.lost_windows
        return State(frequency, step.every, spool.nbytes, dropped, spool.corrupt, pushes)


def _happens(probability: float) -> bool:
    return probability >= 1 or random.random() < probability  # noqa: S311


def _rss_bytes() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
