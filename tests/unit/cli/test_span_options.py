"""The command lines of runqlat and cpudist."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from purebpf.cli.latency_command import SpanOptions
from purebpf.tools.cpudist.__main__ import parse as cpudist
from purebpf.tools.runqlat.__main__ import parse as runqlat

Parse = Callable[[list[str]], SpanOptions]


@pytest.mark.parametrize("parse", [runqlat, cpudist])
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", SpanOptions()),
        ("1", SpanOptions(interval_s=1)),
        ("0.5 10", SpanOptions(interval_s=0.5, times=10)),
        ("-mTe", SpanOptions(milliseconds=True, timestamp=True, totals=True)),
        ("-P -p 185,7", SpanOptions(by="pid", pids=(185, 7))),
        ("-L -t 7", SpanOptions(by="tid", tids=(7,))),
        ("--pidnss", SpanOptions(by="pidns")),
        ("--cgroups -G /sys/fs/cgroup/x", SpanOptions(by="cgroup", cgroup="/sys/fs/cgroup/x")),
        ("-C 0-1 --groups 9", SpanOptions(cpus=(0, 1), groups=9)),
        ("--format json -o f --strict", SpanOptions(format="json", output="f", strict=True)),
        ("--duration 500ms", SpanOptions(interval_s=0.5, times=1)),
        ("2 --duration 1m", SpanOptions(interval_s=2, times=30)),
        ("0.1 --duration 0.3", SpanOptions(interval_s=0.1, times=3)),
        ("1 -- make -p", SpanOptions(interval_s=1, command=("make", "-p"))),
    ],
)
def test_a_command_line_becomes_its_options(parse: Parse, line: str, expected: SpanOptions) -> None:
    assert parse(line.split()) == expected


def test_what_cpudist_alone_knows() -> None:
    assert cpudist(["-O", "-I"]) == SpanOptions(off_cpu=True, include_idle=True)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("-O", "unrecognized arguments: -O"),
        ("-P -L", "not allowed with argument"),
        ("-p 1 -t 2", "not allowed with argument"),
        ("0", "argument interval: '0' must be above zero"),
        ("2 3 --duration 6", "--duration: excludes the number of tables"),
        ("2 --duration 3", "--duration: it must be a multiple of the interval"),
        ("2 --duration 1", "--duration: it must be a multiple of the interval"),
        ("1 0", "argument count: '0' must be above zero"),
        ("-p 1 -- make", "-p and -t exclude a command"),
        ("--", "a command is missing after --"),
    ],
)
def test_a_wrong_command_line_is_refused(
    line: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        runqlat(line.split())
    assert caught.value.code == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("parse", [runqlat, cpudist])
def test_help_fits_a_terminal(parse: Parse, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
