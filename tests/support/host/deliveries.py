"""OTLP messages of hosts that were never there, and what they add up to."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from purebpf.results.formats.otlp import Entry, Sample, Series, Window, document

__all__ = ["HOUR", "HOUR_S", "Sent", "Truth", "messages", "window_message"]

HOUR_S = 1_795_359_600
"""2026-11-22T15:00, UTC."""
HOUR = "2026-11-22T15"
PERIOD_NS = 52_631_579
_FUNCTIONS = [
    Entry(f"function_{number}", f"lib{number % 7}.so", "kernel" if number % 5 == 0 else "user")
    for number in range(40)
]


class Sent(NamedTuple):
    """A message, and the window it is of."""

    host: str
    minute: int
    data: bytes


class Truth:
    """What messages add up to, counted one by one: nanoseconds by key."""

    def __init__(self) -> None:
        self.own: Counter[str] = Counter()
        self.total: Counter[str] = Counter()
        self.service: Counter[str] = Counter()
        self.host: Counter[str] = Counter()

    def add(self, host: str, service: str, stack: tuple[Entry, ...], count: int) -> None:
        value = count * PERIOD_NS
        self.own[stack[0].name] += value
        for name in {entry.name for entry in stack}:
            self.total[name] += value
        self.service[service] += value
        self.host[host] += value


def window_message(
    host: str,
    minute: int,
    services: dict[str, dict[Sample, int]],
    *,
    kind: tuple[str, str] = ("samples", "count"),
    identity: bytes = b"",
    more: tuple[tuple[str, str], ...] = (),
) -> bytes:
    """What an agent sends for a minute after `HOUR_S`."""
    facts = (("purebpf.expected", 1140), ("purebpf.seen", 1139), ("purebpf.lost.map_full", 1))
    window = Window(
        *kind, (HOUR_S + 60 * minute) * 10**9, 60 * 10**9,
        PERIOD_NS if kind[1] == "count" else 0, facts,
        identity or f"{host}/{minute}".encode().ljust(16)[:16],
    )  # fmt: skip
    series = [
        Series((("service.name", name), ("host.name", host), *more), samples)
        for name, samples in services.items()
    ]
    return document(window, series)


def messages(truth: Truth, *, hosts: int = 3, minutes: int = 4, seed: int = 1) -> Iterator[Sent]:
    """Random windows of hosts, a message each."""
    chance = random.Random(seed)
    for minute in range(minutes):
        for host in (f"host{number}" for number in range(hosts)):
            services: dict[str, dict[Sample, int]] = {}
            for service in ("shop", "web"):
                samples = services.setdefault(service, {})
                for _ in range(6):
                    stack = tuple(chance.sample(_FUNCTIONS, chance.randint(1, 6)))
                    count = chance.randint(1, 9)
                    key = Sample(chance.choice(("a", "b")), stack)
                    samples[key] = samples.get(key, 0) + count
                    truth.add(host, service, stack, count)
            yield Sent(host, minute, window_message(host, minute, services))
