"""The command lines of offcpu and wall, without a kernel."""

from __future__ import annotations

import pytest

from purebpf.cli.destination import Destination
from purebpf.offcpu.options import Options, parse, title
from purebpf.wall import options as wall


def test_defaults() -> None:
    assert parse([]) == Options()
    assert wall.parse([]) == wall.Options()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("5", Options(duration_s=5)),
        ("-p 185,2040", Options(pids=(185, 2040))),
        ("-t 7", Options(tids=(7,))),
        ("-u", Options(user_threads_only=True)),
        ("-k", Options(kernel_threads_only=True)),
        ("-U", Options(user_stacks_only=True)),
        ("-K", Options(kernel_stacks_only=True)),
        ("-f -d", Options(to=(Destination("folded", None),), delimited=True)),
        ("-s", Options(offsets=True)),
        ("-m 10 -M 20", Options(min_us=10, max_us=20)),
        ("--state D", Options(states="D")),
        ("--state S,D,R", Options(states="SDR")),
        ("--state 2", Options(states="D")),
        ("--state 3", Options(states="SD")),
        ("--state 0", Options(states="R")),
        ("--thresh 0", Options(threshold_ms=0)),
        ("--thresh 0.5", Options(threshold_ms=0.5)),
        ("--preempt --waker --inflight", Options(preempt=True, waker=True, inflight=True)),
        ("-C 0-1,3", Options(cpus=(0, 1, 3))),
        ("-G /sys/fs/cgroup/x", Options(cgroup="/sys/fs/cgroup/x")),
        ("--stack-storage-size 2", Options(stack_storage_size=2)),
        ("--format json -o out --strict", Options(to=(Destination("json", "out"),), strict=True)),
        ("-- make -p", Options(command=("make", "-p"))),
    ],
)
def test_accepted(line: str, expected: Options) -> None:
    assert parse(line.split()) == expected


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("-p 1 -t 2", "not allowed with argument"),
        ("-u -k", "not allowed with argument"),
        ("-U -K", "not allowed with argument"),
        ("-f --format json", "several formats need a -o each"),
        ("--state Q", "'Q': states are S, D, I, T, t, P and R"),
        ("--state ,", "states are"),
        ("--thresh -1", "must be zero or more milliseconds"),
        ("--thresh nan", "must be zero or more milliseconds"),
        ("-m x", "'x' is no whole number of microseconds"),
        ("-m 20 -M 10", "-M is below -m"),
        ("-p 1 -- true", "do not go with a command"),
    ],
)
def test_refused(line: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(line.split())
    assert caught.value.code == 2
    assert problem in " ".join(capsys.readouterr().err.split())


def test_preempt_adds_a_state() -> None:
    assert "R" not in Options().wanted_states
    assert Options(preempt=True).wanted_states.endswith("R")
    assert Options(states="D", preempt=True).wanted_states == "DR"
    assert Options(states="R", preempt=True).wanted_states == "R"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (Options(), "of all threads by user + kernel stack... Hit Ctrl-C to end."),
        (Options(pids=(1,), duration_s=5), "of PID [1] by user + kernel stack for 5 secs."),
        (Options(tids=(1,), user_stacks_only=True), "of TID [1] by user stack... Hit Ctrl-C"),
        (Options(user_threads_only=True, duration_s=1), "of user threads by user + kernel stack"),
        (Options(kernel_threads_only=True, kernel_stacks_only=True), "kernel threads by kernel"),
        (Options(command=("make",)), "of command 'make' by user + kernel stack until it ends."),
        (Options(cgroup="/c", duration_s=1), "of all threads in cgroup /c by"),
    ],
)
def test_titles(options: Options, text: str) -> None:
    assert title(options).startswith("Tracing off-CPU time (us) of ")
    assert text in title(options)


def test_the_title_of_the_wall_clock() -> None:
    assert wall.title(wall.parse(["-p", "7", "2"])) == (
        "Tracing the wall clock (us) of PID [7], sampling at 99 Hertz for 2 secs."
    )
