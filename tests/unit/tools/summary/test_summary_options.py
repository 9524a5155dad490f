"""Command lines: what they ask for, and how wrong ones are reported."""

from __future__ import annotations

import platform

import pytest

from purebpf.tools.summary.options import SORTS, View, parse
from purebpf.tools.summary.request import SummaryOptions
from purebpf.tools.summary.table import SORT_KEYS
from tests.support.command_line import asking

needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="names of x86 calls")


ALL = """\
--mode thread -t 12,13 -C 0-1 -G /sys/fs/cgroup -u 0 --syscall read,write -x -e ENOENT
--errno-summary --hist --inflight -T 5 --sort calls -i 0.5 --format csv -o out --strict
--map-entries 100 --hook raw_tp 7"""


def test_nothing_is_everything() -> None:
    assert parse([]) == (SummaryOptions(), View())


def test_every_option_becomes_its_field() -> None:
    found = parse(ALL.split())
    assert found == asking(
        (SummaryOptions(), View()),
        mode="thread",
        tids=(12, 13),
        cpus=(0, 1),
        cgroup="/sys/fs/cgroup",
        uid=0,
        calls=("read", "write"),
        only_failed=True,
        errno=2,
        errno_summary=True,
        histogram=True,
        inflight=True,
        top=5,
        sort="calls",
        interval_s=0.5,
        duration_s=7.0,
        format="csv",
        output="out",
        strict=True,
        map_entries=100,
        hook="raw_tp",
    )


def test_a_command_keeps_its_own_options() -> None:
    assert parse(["-x", "--", "ls", "-l", "--", "x"])[0].command == ("ls", "-l", "--", "x")


def usage_error(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as exit_:
        parse(argv)
    assert exit_.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--"], "a command is missing after --"),
        (["-p", "1", "--", "true"], "-p and -t exclude a command"),
        (["-p", "1", "-t", "2"], "not allowed with"),
        (["--mode", "cpu"], "invalid choice: 'cpu'"),
        (["-e", "ENOEND"], "unknown error 'ENOEND'; did you mean ENOENT?"),
        (["-e", "0"], "unknown error '0'"),
        (["-u", "nobody-at-all"], "unknown user 'nobody-at-all'"),
        (["-i", "0"], "'0' must be above zero"),
        (["-T", "0"], "'0' must be above zero"),
    ],
)
def test_a_wrong_command_line_is_refused(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in usage_error(capsys, *argv)


@needs_x86
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("opennat", "unknown system call 'opennat'; did you mean openat?"),
        ("read,", "unknown system call ''"),
        ("1234567", "unknown system call '1234567'"),
    ],
)
def test_unknown_system_calls_are_refused(
    name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in usage_error(capsys, "--syscall", name)


@needs_x86
def test_calls_of_other_abis_are_known() -> None:
    assert parse(["--syscall", "socketcall"])[0].calls == ("socketcall",)


def test_a_call_without_a_filter_has_none() -> None:
    assert not SummaryOptions(pids=(1,), mode="thread").has_filters
    for changed in ({"errno": 1}, {"uid": 0}, {"cpus": (0,)}, {"cgroup": "/"}, {"calls": ("a",)}):
        assert SummaryOptions(**changed).has_filters


@pytest.mark.parametrize(
    ("line", "histogram", "errno_summary", "cost"),
    [
        ("", False, False, False),
        ("--hist", True, False, False),
        ("--sort p99", True, False, False),
        ("--errno-summary", False, True, False),
        ("-x", False, True, False),
        ("-x --layout perf", False, False, False),
        ("--format json", True, True, True),
        ("--format csv", True, True, False),
    ],
)
def test_the_kernel_counts_only_what_is_shown(
    line: str, *, histogram: bool, errno_summary: bool, cost: bool
) -> None:
    request, _ = parse(line.split())
    assert (request.histogram, request.errno_summary, request.cost) == (
        histogram,
        errno_summary,
        cost,
    )


def test_every_sort_key_sorts() -> None:
    assert tuple(SORT_KEYS) == SORTS


@pytest.mark.parametrize("key", ["p50", "p95", "p99"])
def test_percentiles_that_sort_are_shown(key: str) -> None:
    assert View(sort=key).has_percentiles
    assert View(histogram=True).has_percentiles
    assert not View(sort="max").has_percentiles
