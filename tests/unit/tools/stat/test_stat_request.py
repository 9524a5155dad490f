"""Command lines of stat, and lists of events."""

from __future__ import annotations

import pytest

from purebpf.cli.event_command import EventView
from purebpf.tools.stat.options import Repeats, parse
from purebpf.tools.stat.request import StatOptions, default_groups, parse_groups
from tests.support.command_line import asking

DEFAULTS = (StatOptions(), EventView(), Repeats())


def test_nothing_is_the_whole_machine() -> None:
    assert parse([]) == DEFAULTS


def test_every_option_becomes_its_field() -> None:
    line = "-p 12,13 -C 0-1 -G /x -e page-faults -e {cs,faults}:u -A -i 2 --no-inherit"
    assert parse(
        [*line.split(), *["--format", "csv", "-o", "out", "--strict", "-v", "7"]]
    ) == asking(
        DEFAULTS,
        pids=(12, 13),
        cpus=(0, 1),
        cgroup="/x",
        groups=(("page-faults",), ("cs:u", "faults:u")),
        by="cpu",
        interval_s=2.0,
        inherit=False,
        duration_s=7.0,
        format="csv",
        output="out",
        strict=True,
        verbose=True,
    )
    assert parse(["-r", "3", "-a", "--", "true"]) == asking(
        DEFAULTS, runs=3, all_cpus=True, command=("true",)
    )
    assert parse(["--for-each-cgroup", "a,b/*"]) == asking(DEFAULTS, for_each_cgroup=("a", "b/*"))
    assert parse(["-I", "250", "-t", "5", "--per-thread"]) == asking(
        DEFAULTS, interval_s=0.25, tids=(5,), by="thread"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-e {cs,faults", "a closing brace is missing"),
        ("-e {{cs}}", "the braces of '{{cs}}' do not match"),
        ("-e cs}", "the braces of 'cs}' do not match"),
        ("-e cs,,faults", "does not have a name"),
        ("-e {}", "does not have a name"),
        ("-e {cs}u", "'{cs}u' is not a group"),
        ("-r 2", "-r needs a command"),
        ("-r 2 -i 1 -- true", "exclude each other"),
        ("-i 1 -I 100", "not allowed with argument"),
        ("--per-thread", "needs -p"),
        ("--for-each-cgroup a -p 1", "excludes -p"),
        ("--for-each-cgroup a,,b", "a pattern of 'a,,b' is empty"),
        ("-a", "-a needs a command"),
        ("-p 1 -- true", "exclude a command"),
    ],
)
def test_wrong_options_are_reported(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(line.split())
    assert said in capsys.readouterr().err


def test_commas_in_a_group_and_between_slashes_do_not_split() -> None:
    assert parse_groups("a,{b,cpu/event=1,umask=2/}:uk,msr/tsc/") == (
        ("a",),
        ("b:uk", "cpu/event=1,umask=2/uk"),
        ("msr/tsc/",),
    )


def test_the_default_clock_is_that_of_the_target() -> None:
    assert default_groups(of_tasks=True)[0] == ("task-clock",)
    assert default_groups(of_tasks=False)[0] == ("cpu-clock",)
    assert not StatOptions(command=("true",), all_cpus=True).is_of_tasks
    assert StatOptions(command=("true",)).is_of_tasks


def test_breakpoints_are_events_of_lists_and_groups() -> None:
    assert parse_groups("mem:0x10/4:w,cs,{mem:0x20/8,faults}:u,cpu/event=1,umask=2/") == (
        ("mem:0x10/4:w",),
        ("cs",),
        ("mem:0x20/8:u", "faults:u"),
        ("cpu/event=1,umask=2/",),
    )
