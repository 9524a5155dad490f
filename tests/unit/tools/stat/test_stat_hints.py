"""Commands that a count points to."""

from __future__ import annotations

import pytest

from purebpf.results import Loss
from purebpf.tools.stat.counts import CountedEvent, Part, Result, add_up
from purebpf.tools.stat.hints import hints

SWITCHES = CountedEvent("cs", "context-switches", "ukh", 0)
FAULTS = CountedEvent("page-faults", "page-faults", "ukh", 1)


def counted(switches: int, faults: int, key: str = "") -> Result:
    """Five seconds."""
    parts = [Part(0, key, switches, 100, 100), Part(1, key, faults, 100, 100)]
    return Result(tuple(add_up([SWITCHES, FAULTS], [key], parts)), 5.0, 5.0, Loss(), ())


def test_high_rates_lead_to_their_reasons() -> None:
    assert list(hints(counted(500_000, 200_000), (7,))) == [
        "100,000 context switches a second: purebpf offcpu -p 7 shows what they wait for",
        "40,000 page faults a second: purebpf mem --show faults -p 7 shows their functions",
    ]


@pytest.mark.parametrize(
    ("result", "pids"),
    [
        (counted(90_000, 90_000), (7,)),
        (counted(500_000, 0), ()),
        (counted(500_000, 0), (7, 8)),
        (counted(500_000, 0, "CPU 0"), (7,)),
    ],
    ids=["usual rates", "the whole machine", "two processes", "rows of their own"],
)
def test_other_counts_lead_nowhere(result: Result, pids: tuple[int, ...]) -> None:
    assert list(hints(result, pids)) == []
