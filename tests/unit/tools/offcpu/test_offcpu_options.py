"""The command lines of offcpu and wall, without a kernel."""

from __future__ import annotations

import pytest

from purebpf.cli.destination import Destination, ResultOptions
from purebpf.tools.offcpu.options import parse
from purebpf.tools.offcpu.request import OffCpuOptions, title
from purebpf.tools.wall import options as wall
from purebpf.tools.wall.request import WallOptions
from purebpf.tools.wall.request import title as wall_title
from tests.support.command_line import asking


def asked(**fields: object) -> tuple[OffCpuOptions, ResultOptions]:
    return asking((OffCpuOptions(), ResultOptions(offsets=False)), **fields)  # type: ignore[return-value]


def test_an_empty_command_line_asks_for_the_defaults() -> None:
    assert parse([]) == asked()
    assert wall.parse([]) == (WallOptions(), ResultOptions(offsets=False))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("5", asked(duration_s=5)),
        ("-p 185,2040", asked(pids=(185, 2040))),
        ("-t 7", asked(tids=(7,))),
        ("-u", asked(user_threads_only=True)),
        ("-k", asked(kernel_threads_only=True)),
        ("-U", asked(user_stacks_only=True)),
        ("-K", asked(kernel_stacks_only=True)),
        ("-f -d", asked(to=(Destination("folded", None),), delimited=True)),
        ("-s", asked(offsets=True)),
        ("-m 10 -M 20", asked(min_us=10, max_us=20)),
        ("--state D", asked(states="D")),
        ("--state S,D,R", asked(states="SDR")),
        ("--state 2", asked(states="D")),
        ("--state 3", asked(states="SD")),
        ("--state 0", asked(states="R")),
        ("--thresh 0", asked(threshold_ms=0)),
        ("--thresh 0.5", asked(threshold_ms=0.5)),
        ("--preempt --waker --inflight", asked(preempt=True, waker=True, inflight=True)),
        ("-C 0-1,3", asked(cpus=(0, 1, 3))),
        ("-G /sys/fs/cgroup/x", asked(cgroup="/sys/fs/cgroup/x")),
        ("--stack-storage-size 2", asked(stack_storage_size=2)),
        (
            "--format json -o out --strict",
            asked(to=(Destination("json", "out"),), strict=True, one_by_one=True),
        ),
        ("-- make -p", asked(command=("make", "-p"))),
    ],
)
def test_a_command_line_becomes_its_options(
    line: str, expected: tuple[OffCpuOptions, ResultOptions]
) -> None:
    assert parse(line.split()) == expected


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("-p 1 -t 2", "not allowed with argument"),
        ("-u -k", "not allowed with argument"),
        ("-U -K", "not allowed with argument"),
        ("-f --format json", "each of several formats needs its own -o"),
        ("--state Q", "'Q'; known: S, D, I, T, t, P, R and gil"),
        ("--state ,", "unknown state"),
        ("--thresh -1", "must be zero or more milliseconds"),
        ("--thresh nan", "'nan' is not a time such as 500us"),
        ("-m x", "'x' is not a whole number of microseconds"),
        ("-m 20 -M 10", "-M is below -m"),
        ("-p 1 -- true", "exclude a command"),
    ],
)
def test_a_wrong_command_line_is_refused(
    line: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(line.split())
    assert caught.value.code == 2
    assert problem in " ".join(capsys.readouterr().err.split())


def test_preempt_adds_a_state() -> None:
    assert "R" not in OffCpuOptions().wanted_states
    assert OffCpuOptions(preempt=True).wanted_states.endswith("R")
    assert OffCpuOptions(states="D", preempt=True).wanted_states == "DR"
    assert OffCpuOptions(states="R", preempt=True).wanted_states == "R"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (OffCpuOptions(), "of all threads by user + kernel stack... Hit Ctrl-C to end."),
        (OffCpuOptions(pids=(1,), duration_s=5), "of PID [1] by user + kernel stack for 5 secs."),
        (OffCpuOptions(tids=(1,), user_stacks_only=True), "of TID [1] by user stack... Hit Ctrl-C"),
        (
            OffCpuOptions(user_threads_only=True, duration_s=1),
            "of user threads by user + kernel stack",
        ),
        (
            OffCpuOptions(kernel_threads_only=True, kernel_stacks_only=True),
            "kernel threads by kernel",
        ),
        (
            OffCpuOptions(command=("make",)),
            "of command 'make' by user + kernel stack until it ends.",
        ),
        (OffCpuOptions(cgroup="/c", duration_s=1), "of all threads in cgroup /c by"),
    ],
)
def test_the_title_says_what_is_traced(options: OffCpuOptions, text: str) -> None:
    assert title(options).startswith("Tracing off-CPU time (us) of ")
    assert text in title(options)


def test_the_title_of_the_wall_clock() -> None:
    assert wall_title(wall.parse(["-p", "7", "2"])[0]) == (
        "Tracing the wall clock (us) of PID [7], sampling at 99 Hertz for 2 secs."
    )
