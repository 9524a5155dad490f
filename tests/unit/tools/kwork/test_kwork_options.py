"""Command lines of kwork: what they ask for, and how wrong ones are reported."""

from __future__ import annotations

import pytest

from purebpf.cli.event_command import EventView
from purebpf.tools.kwork.options import KworkView, parse
from purebpf.tools.kwork.request import KINDS, PROGRAMS, KworkOptions
from tests.support.command_line import asking

DEFAULTS = (KworkOptions(), EventView(), KworkView())


def test_nothing_is_a_report_of_all_kinds() -> None:
    assert parse([]) == DEFAULTS
    assert parse(["report"]) == DEFAULTS


def test_every_option_becomes_its_field() -> None:
    line = "latency -k irq,work -n a* -n b -C 0-1 -A --queued-by --hist -E 5 -i 2 --map-entries 9"
    assert parse([*line.split(), "--format", "csv", "--strict", "7"]) == asking(
        DEFAULTS,
        mode="latency",
        sort="delay",
        kinds=("irq", "work"),
        names=("a*", "b"),
        cpus=(0, 1),
        by_cpu=True,
        stacks=True,
        histogram=True,
        most=5,
        interval_s=2.0,
        rows=9,
        format="csv",
        strict=True,
        duration_s=7.0,
    )


def test_top_has_an_interval_of_a_second_unless_another_is_given() -> None:
    assert parse(["top"]) == asking(DEFAULTS, mode="top", interval_s=1.0, shares=True)
    assert parse(["top", "-i", "3", "-s", "count", "--", "true"]) == asking(
        DEFAULTS, mode="top", interval_s=3.0, sort="count", shares=True, command=("true",)
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-k irqs", "unknown kind 'irqs' (known: irq, softirq, tasklet, work"),
        ("-s name", "invalid choice: 'name'"),
        ("reports", "'reports' is not a duration such as 500ms"),
        ("--map-entries 0", "'0' must be above zero"),
    ],
)
def test_wrong_options_are_reported(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(line.split())
    assert said in capsys.readouterr().err


def test_every_kind_has_programs() -> None:
    assert tuple(PROGRAMS) == KINDS
