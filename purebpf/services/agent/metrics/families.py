"""Metrics as Prometheus has them: names, units, labels. https://prometheus.io/docs/practices/naming"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from purebpf import __version__
from purebpf.results.shape.histogram import BUCKETS, bucket_bounds
from purebpf.services.agent.metrics.counts import Counts

__all__ = ["Families", "Pushes", "State"]

_OCTAVES = 28
"""Bounds of 1 us to 134 s."""


class Pushes(NamedTuple):
    """The fates of windows at a sink; `last_s` since 1970, 0: none was sent yet."""

    sink: str
    sent: int
    failed: int
    refused: int
    last_s: float


class State(NamedTuple):
    """The present state of the agent."""

    frequency: int
    every: int
    spool_bytes: int
    dropped_windows: int
    corrupt_windows: int
    pushes: Sequence[Pushes]


Distributions = Mapping[str, tuple[int, Sequence[int]]]
"""Sum in nanoseconds and buckets (`purebpf.results.shape.histogram`, of microseconds)."""


class Families:
    """A collector of prometheus_client.

    Args:
        counts: of windows.
        state: of the agent, asked at each scrape.
        distributions: "run_queue" and "on_cpu", where they are measured.
    """

    def __init__(
        self,
        counts: Counts,
        state: Callable[[], State],
        distributions: Callable[[], Distributions],
    ) -> None:
        self._counts, self._state, self._distributions = counts, state, distributions

    def collect(self) -> Iterator[Metric]:
        """Everything, now."""
        totals, state = self._counts.totals(), self._state()
        yield _counter(
            "purebpf_cpu_seconds", "CPU time by service.", ("service",),
            (((service,), ns / 1e9) for service, ns in totals.cpu.items()),
        )  # fmt: skip
        yield _counter(
            "purebpf_offcpu_seconds", "Time blocked, and in run queues.", ("service", "state"),
            ((labels, ns / 1e9) for labels, ns in totals.waits.items()),
        )  # fmt: skip
        if totals.calls:
            yield _counter(
                "purebpf_syscalls", "System calls that returned.", ("syscall",),
                (((name,), number) for name, number in totals.calls.items()),
            )  # fmt: skip
            yield _counter(
                "purebpf_syscall_errors", "System calls that failed.", ("syscall", "errno"),
                totals.call_errors.items(),
            )  # fmt: skip
        for name, (total_ns, buckets) in self._distributions().items():
            yield _histogram(*_HISTOGRAMS[name], total_ns, buckets)
        plain = (
            ("samples_expected", "Samples that clocks of CPUs should have given.", totals.expected),
            ("samples_seen", "Samples that came.", totals.seen),
            ("windows", "Windows of samples that were written.", totals.windows),
            ("lumped", "Services and calls without a label of their own.", totals.lumped),
            ("cpu_seconds", "CPU time of the agent itself.", totals.agent_cpu_ns / 1e9),
            ("bpf_run_seconds", "CPU time of its BPF programs.", totals.bpf_run_ns / 1e9),
            ("dropped_windows", "Windows that some sink never got.", state.dropped_windows),
            ("corrupt_windows", "Files of the spool that were damaged.", state.corrupt_windows),
        )
        for name, text, value in plain:
            yield _counter(f"purebpf_agent_{name}", text, (), [((), value)])
        yield _counter(
            "purebpf_agent_lost", "What windows do not include.", ("cause",),
            (((cause,), number) for cause, number in totals.lost.items()),
        )  # fmt: skip
        yield from _pushes(state.pushes)
        gauges = (
            ("spool_bytes", "What waits for sinks.", state.spool_bytes),
            ("sampling_hertz", "Samples a second of a busy CPU; 0: none.", state.frequency),
            ("sampled_windows_ratio", "Windows that the budget allows.", 1 / state.every),
            ("unknown_frames_ratio", "Frames without a name, last window.", totals.unknown_ratio),
        )
        for name, text, value in gauges:
            yield GaugeMetricFamily(f"purebpf_agent_{name}", text, value)
        build = GaugeMetricFamily("purebpf_build_info", "Which purebpf.", labels=("version",))
        build.add_metric((__version__,), 1)
        yield build


_HISTOGRAMS = {
    "run_queue": ("purebpf_runqueue_wait_seconds", "How long tasks waited for a CPU."),
    "on_cpu": ("purebpf_cpu_burst_seconds", "How long tasks stayed on a CPU."),
}


def _counter(
    name: str,
    text: str,
    labels: Sequence[str],
    values: Iterable[tuple[Sequence[str], float]],
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=labels)
    for words, value in values:
        family.add_metric(words, value)
    return family


def _histogram(
    name: str, text: str, total_ns: int, buckets: Sequence[int]
) -> HistogramMetricFamily:
    """Cumulative, by powers of two of microseconds: those are bounds of our buckets, too."""
    bounds, below, at = [], 0, 0
    for octave in range(_OCTAVES):
        limit = 1 << octave
        while at < BUCKETS and bucket_bounds(at)[1] <= limit:
            below += buckets[at]
            at += 1
        bounds.append((repr(limit / 1e6), below))
    bounds.append(("+Inf", sum(buckets)))
    family = HistogramMetricFamily(name, text)
    family.add_metric((), bounds, total_ns / 1e9)
    return family


def _pushes(pushes: Iterable[Pushes]) -> Iterator[Metric]:
    last = GaugeMetricFamily(
        "purebpf_agent_last_push_timestamp_seconds", "When a sink took a window.", labels=("sink",)
    )
    results: list[tuple[tuple[str, str], int]] = []
    for push in pushes:
        name = push.sink
        results += [((name, "sent"), push.sent), ((name, "failed"), push.failed)]
        results.append(((name, "refused"), push.refused))
        if push.last_s:
            last.add_metric((name,), push.last_s)
    yield _counter(
        "purebpf_agent_pushes", "Windows by sink, and what it did.", ("sink", "result"), results
    )
    yield last
