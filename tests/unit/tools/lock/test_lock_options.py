"""Command lines of lock: what they ask for, and how wrong ones are reported."""

from __future__ import annotations

import pytest

from purebpf.cli.event_command import EventView
from purebpf.tools.lock.options import LockView, parse
from purebpf.tools.lock.request import TYPES, LockOptions, type_bits, type_name
from tests.support.command_line import asking

ALL = """\
-p 12,13 --tree -C 0-1 -G /sys/fs/cgroup --slower 2.5 --type mutex,rwsem:W --by owner --hist
--stacks -i 2 -E 5 --map-entries 9 --format json -o out --strict 7"""


def test_nothing_is_every_lock_by_caller() -> None:
    assert parse([]) == (LockOptions(), EventView(), LockView())


def test_every_option_becomes_its_field() -> None:
    assert parse(ALL.split()) == asking(
        (LockOptions(), EventView(), LockView()),
        pids=(12, 13),
        tree=True,
        cpus=(0, 1),
        cgroup="/sys/fs/cgroup",
        slower_ms=2.5,
        types=("mutex", "rwsem:W"),
        by="owner",
        histogram=True,
        stacks=True,
        interval_s=2.0,
        most=5,
        rows=9,
        duration_s=7.0,
        format="json",
        output="out",
        strict=True,
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--type mutes", "unknown type of lock 'mutes' (known: semaphore, spinlock, rwsem:R"),
        ("--by name", "invalid choice: 'name'"),
        ("--slower -1", "'-1' must be zero or more milliseconds"),
        ("--map-entries 0", "'0' must be above zero"),
        ("-E x", "'x' is not a whole number"),
    ],
)
def test_wrong_options_are_reported(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(line.split())
    assert said in capsys.readouterr().err


def test_folded_stacks_are_rows_by_stack() -> None:
    options, view, _ = parse(["--format", "folded"])
    assert (options.by, view.format) == ("stack", "folded")


def test_a_type_without_its_letter_is_both() -> None:
    assert type_bits(("rwsem",)) == 1 << 2 | 1 << 4
    assert type_bits(("rwsem:W", "mutex")) == 1 << 4 | 1 << 32
    assert all(type_bits(()) >> flags & 1 for flags in TYPES.values())


def test_types_have_names() -> None:
    assert {type_name(flags) for flags in TYPES.values()} == {*TYPES}
    assert type_name(64) == "flags 0x40"
