"""The kernel's counts for metrics beside the profile: scheduling latencies, system calls.

Both are opt-in: their programs run at each switch of tasks, and at each system call.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self

from purebpf.closable import Closing
from purebpf.errors import KernelError, errno_name
from purebpf.services.agent.config import Metrics
from purebpf.services.agent.metrics.counts import Counts
from purebpf.tools.runqlat import Spans
from purebpf.tools.summary import Summary, SummaryOptions

__all__ = ["KernelCounts"]


class KernelCounts(Closing):
    """Counts from when it is entered.

    Args:
        wanted: section [metrics] of the configuration.
        window_s: how often `take_calls` is called.

    Raises, when it is entered: as `Spans` and `Summary`; nothing stays open then.
    """

    def __init__(self, wanted: Metrics, window_s: float) -> None:
        self._wanted, self._window_s = wanted, window_s
        self._owned = ExitStack()
        self._spans: dict[str, Spans] = {}
        self._summary: Summary | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            if self._wanted.scheduler:
                for measure in ("run_queue", "on_cpu"):
                    spans = stack.enter_context(Spans(measure))
                    spans.start()
                    self._spans[measure] = spans
            if self._wanted.syscalls:
                options = SummaryOptions(interval_s=self._window_s, errno_summary=True)
                self._summary = stack.enter_context(Summary(options))
            self._owned = stack.pop_all()
        return self

    def distributions(self) -> dict[str, tuple[int, list[int]]]:
        """Sum and buckets of each measure since the start; {} once it is closed."""
        try:
            return {measure: spans.read()[0] for measure, spans in self._spans.items()}
        except (KernelError, ValueError):  # closed between two scrapes
            return {}

    def take_calls(self, counts: Counts) -> None:
        """Add the calls since the last time to `counts`.

        Raises:
            KernelError: a map could not be read.
        """
        if self._summary is None:
            return
        calls: dict[str, int] = {}
        errors: dict[tuple[str, str], int] = {}
        for group in self._summary.interval().groups:
            for row in group.rows:
                name = row.call.name
                calls[name] = calls.get(name, 0) + row.statistics.calls
                for number, times in row.statistics.errnos.items():
                    key = name, errno_name(number)
                    errors[key] = errors.get(key, 0) + times
        counts.add_calls(calls, errors)

    def close(self) -> None:
        """End; again is harmless."""
        self._owned.close()
