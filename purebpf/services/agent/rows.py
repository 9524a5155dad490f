"""Splits a window's profile: on CPU, blocked, or in the run queue. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.results import Profile
from purebpf.results.build.offcpu_rows import Place, Span
from purebpf.results.formats.otlp_series import Weighted

__all__ = ["off_cpu", "on_cpu", "run_queue", "without_threads"]


def on_cpu(profile: Profile) -> Iterator[Weighted]:
    """Every sample."""
    for row in profile.rows():
        yield row, row.weight


def off_cpu(profile: Profile) -> Iterator[Weighted]:
    """Nanoseconds that threads were blocked."""
    for row in profile.rows():
        blocked = 0 if row.labels.state == "R" else row.weight - max(0, row.marks.runnable)
        if blocked:
            yield row, blocked


def run_queue(profile: Profile) -> Iterator[Weighted]:
    """Nanoseconds that threads waited for a CPU: preempted, or after a wake-up."""
    for row in profile.rows():
        waited = row.weight if row.labels.state == "R" else max(0, row.marks.runnable)
        if waited:
            yield row, waited


def without_threads(spans: dict[Place, Span]) -> Iterator[tuple[Place, Span]]:
    """Return the spans without the labels of threads; `spans` is empty after that."""
    while spans:
        place, span = spans.popitem()
        yield place._replace(tid=0, is_open=False, holder=0), span
