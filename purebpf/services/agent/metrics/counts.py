"""Counters of all windows so far. Pure, and safe to read from the thread of a scrape.

Labels are few on purpose: no process, no address, no container. The 500th service and the later
ones are `other`, as are the ones above a hundred of one user, who may choose their names.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from purebpf.results.formats.otlp import Series
from purebpf.services.agent.name_shares import OTHER, UNKNOWN_USER, NameShares

__all__ = ["Counts", "Totals"]

_MOST_SERVICES = 500
_MOST_OF_USER = 100
_MOST_CALLS = 200
_STATES = {"offcpu": "blocked", "runqueue": "run_queue"}


class Totals(NamedTuple):
    """The counts so far; times in nanoseconds.

    `waits` are by (service, state), `calls` by name, `call_errors` by (name, errno), `lost` by
    cause. `lumped` counts services and calls that went to `other`.
    """

    cpu: Mapping[str, int]
    waits: Mapping[tuple[str, str], int]
    calls: Mapping[str, int]
    call_errors: Mapping[tuple[str, str], int]
    lost: Mapping[str, int]
    expected: int
    seen: int
    windows: int
    lumped: int
    agent_cpu_ns: int
    bpf_run_ns: int
    unknown_ratio: float


class Counts:
    """Adds up windows as they are written."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cpu: Counter[str] = Counter()
        self._waits: Counter[tuple[str, str]] = Counter()
        self._calls: Counter[str] = Counter()
        self._call_errors: Counter[tuple[str, str]] = Counter()
        self._lost: Counter[str] = Counter()
        self._services = NameShares(_MOST_SERVICES, _MOST_OF_USER)
        self._numbers: Counter[str] = Counter()
        self._unknown_ratio = 0.0

    def add_window(
        self,
        kind: str,
        period_ns: int,
        series: Iterable[Series],
        facts: Mapping[str, str | int],
        users: Mapping[str, int],
    ) -> None:
        """A window of samples (`period_ns` each) or of waits (nanoseconds, 0).

        `users` have chosen the names of services.
        """
        with self._lock:
            for resource, samples in series:
                name = str(dict(resource).get("service.name", ""))
                service = self._service(name, users.get(name, UNKNOWN_USER))
                value = sum(samples.values()) * (period_ns or 1)
                if kind == "cpu":
                    self._cpu[service] += value
                else:
                    self._waits[service, _STATES[kind]] += value
            if kind != "cpu":
                return
            self._numbers["windows"] += 1
            for name in ("expected", "seen"):
                self._numbers[name] += _whole(facts.get(f"purebpf.{name}", 0))
            self._unknown_ratio = _whole(facts.get("purebpf.unknown_ppm", 0)) / 1e6
            for name, number in facts.items():
                if name.startswith("purebpf.lost."):
                    self._lost[name.removeprefix("purebpf.lost.")] += _whole(number)

    def add_cost(self, cpu_ns: int, bpf_ns: int) -> None:
        """Add the agent's cost since the last call."""
        with self._lock:
            self._numbers["cpu_ns"] += cpu_ns
            self._numbers["bpf_ns"] += bpf_ns

    def add_calls(self, calls: Mapping[str, int], errors: Mapping[tuple[str, str], int]) -> None:
        """System calls of a window, and those that failed, by errno."""
        with self._lock:
            # the most frequent ones of the first window have names of their own
            for name, number in sorted(calls.items(), key=lambda item: -item[1]):
                self._calls[self._call(name)] += number
            for (name, errno), number in errors.items():
                self._call_errors[self._call(name), errno] += number

    def totals(self) -> Totals:
        """Return the present totals."""
        with self._lock:
            numbers = self._numbers
            return Totals(
                dict(self._cpu), dict(self._waits), dict(self._calls), dict(self._call_errors),
                dict(self._lost), numbers["expected"], numbers["seen"], numbers["windows"],
                numbers["lumped"], numbers["cpu_ns"], numbers["bpf_ns"], self._unknown_ratio,
            )  # fmt: skip

    def _service(self, name: str, user: int) -> str:
        if self._services.admit(name, user):
            return name
        self._numbers["lumped"] += 1
        return OTHER

    def _call(self, name: str) -> str:
        if name in self._calls or len(self._calls) < _MOST_CALLS:
            return name
        self._numbers["lumped"] += 1
        return OTHER


def _whole(value: str | int) -> int:
    return value if isinstance(value, int) else 0
