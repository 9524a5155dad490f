"""Command lines of io: what they ask for, and how wrong ones are reported."""

from __future__ import annotations

import pytest

from purebpf.cli.event_command import EventView
from purebpf.tools.io.options import IoView, parse
from purebpf.tools.io.request import IoOptions
from tests.support.command_line import asking

ALL = """\
-p 12,13 --tree -C 0-1 -G /sys/fs/cgroup --slower 2.5 --device vda --failed --by file --hist
--map-entries 9 --format json -o out --strict 7"""


def test_nothing_is_every_device() -> None:
    assert parse([]) == (IoOptions(), EventView(), IoView())


def test_every_option_becomes_its_field() -> None:
    assert parse(ALL.split()) == asking(
        (IoOptions(), EventView(), IoView()),
        pids=(12, 13),
        tree=True,
        cpus=(0, 1),
        cgroup="/sys/fs/cgroup",
        slower_ms=2.5,
        device="vda",
        only_failed=True,
        by="file",
        histogram=True,
        rows=9,
        duration_s=7.0,
        format="json",
        output="out",
        strict=True,
    )


def test_failed_requests_are_shown_one_by_one() -> None:
    assert parse(["--failed"])[0].slower_ms == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--slower", "x"], "'x' is not a time such as 500us, 10ms or 2s"),
        (["--slower", "-1"], "'-1' must be zero or more milliseconds"),
        (["--by", "disk"], "invalid choice: 'disk'"),
        (["-p", "1", "--", "true"], "exclude a command"),
    ],
)
def test_a_wrong_option_is_said(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        parse(arguments)
    assert raised.value.code == 2
    assert message in capsys.readouterr().err
