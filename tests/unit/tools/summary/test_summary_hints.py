"""Commands that a summary points to."""

from __future__ import annotations

import pytest

from purebpf.results import Loss
from purebpf.tools.summary.calls import Call
from purebpf.tools.summary.hints import Hint, hints
from purebpf.tools.summary.statistics import Statistics
from purebpf.tools.summary.table import Cost, Group, Label, SummaryRow, Table


def table(**counts: tuple[int, int]) -> Table:
    """Two seconds of calls by name: how many, and how many of them failed."""
    rows = []
    for name, (calls, errors) in counts.items():
        statistics = Statistics()
        statistics.add(calls, errors, calls * 1000, min_ns=1000, max_ns=1000, squares=0)
        rows.append(SummaryRow(Call("x86_64", 0, name), statistics))
    groups = (Group(Label(), tuple(rows)),)
    return Table("total", 0, 2_000_000_000, 0, groups, (), Loss(seen=1), Cost(0, 0))


def test_many_opens_lead_to_their_files() -> None:
    assert list(hints(table(openat=(9000, 0), open=(1000, 9), read=(20_000, 0)), (7,))) == [
        Hint("open", "the files of 5000 opens a second: purebpf open --summary -p 7")
    ]


def test_attempts_that_fail_lead_to_their_peers() -> None:
    assert list(hints(table(connect=(6000, 6000)), (7, 8))) == [
        Hint("connect", "how 3000 connects a second ended: purebpf tcp --summary")
    ]


@pytest.mark.parametrize(
    "counted",
    [
        table(openat=(900, 0), read=(10, 0)),
        table(openat=(2000, 0), read=(90_000, 0)),
        table(connect=(50, 1), read=(10, 0)),
        table(),
    ],
    ids=["few opens", "beside many reads", "hardly one fails", "nothing"],
)
def test_a_usual_mix_of_calls_leads_nowhere(counted: Table) -> None:
    assert list(hints(counted, (7,))) == []
