"""The command line of the profiler, without a kernel."""

from __future__ import annotations

import pytest

from purebpf.cli.destination import Destination
from purebpf.profile.options import Options, parse, title

FOLDED = Destination("folded", None)


def test_defaults() -> None:
    assert parse([]) == Options()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("5", Options(duration_s=5)),
        ("-F 99 0.5", Options(frequency=99, duration_s=0.5)),
        ("-c 1000000", Options(period=1000000)),
        ("-p 185,2040", Options(pids=(185, 2040))),
        ("--pid 185", Options(pids=(185,))),
        ("-L 7", Options(tids=(7,))),
        ("-U", Options(kernel_stacks=False)),
        ("-K", Options(user_stacks=False)),
        ("-I", Options(include_idle=True)),
        ("-C 0-1,3", Options(cpus=(0, 1, 3))),
        ("-f", Options(to=(FOLDED,))),
        ("-f -a -d", Options(to=(FOLDED,), annotations=True, delimited=True)),
        ("--format json", Options(to=(Destination("json", None),))),
        ("-A", Options(addresses=True)),
        ("-G /sys/fs/cgroup/x", Options(cgroup="/sys/fs/cgroup/x")),
        ("--cgroupmap /sys/fs/bpf/c", Options(cgroup_map="/sys/fs/bpf/c")),
        ("--mntnsmap /sys/fs/bpf/m", Options(mount_namespace_map="/sys/fs/bpf/m")),
        ("--hash-storage-size 1", Options(hash_storage_size=1)),
        ("--stack-storage-size 2", Options(stack_storage_size=2)),
        ("-o out", Options(to=(Destination("text", "out"),))),
        (
            "-o a.html -o b.pb.gz",
            Options(to=(Destination("html", "a.html"), Destination("pprof", "b.pb.gz"))),
        ),
        ("--serve", Options(serve=("127.0.0.1", 0))),
        ("--serve :80", Options(serve=("127.0.0.1", 80))),
        ("--serve [::1]:8080 5", Options(serve=("::1", 8080), duration_s=5)),
        ("--strict", Options(strict=True)),
        ("-- make -p -f x", Options(command=("make", "-p", "-f", "x"))),
        ("2 -F 99 -- a -- b", Options(duration_s=2, frequency=99, command=("a", "--", "b"))),
    ],
)
def test_accepted(line: str, expected: Options) -> None:
    assert parse(line.split()) == expected


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("-p 1 -L 2", "not allowed with argument"),
        ("-U -K", "not allowed with argument"),
        ("-F 1 -c 1", "not allowed with argument"),
        ("-f --format json", "several formats need a -o each"),
        ("-F 0", "argument -F/--frequency: '0' must be above zero"),
        ("-c -5", "argument -c/--count"),
        ("-p x", "argument -p/--pid: 'x' is not a process id"),
        ("-C 1-", "argument -C/--cpu: '' is not a CPU number"),
        ("0", "argument duration: '0' must be above zero"),
        ("five", "argument duration: 'five' is no number of seconds"),
        ("--format svg", "'svg' is no format; choose from text"),
        ("--hash-storage-size 0", "argument --hash-storage-size"),
        ("--serve 5", "argument --serve: '5' is no ADDR:PORT"),
        ("--serve :99999", "':99999' is no ADDR:PORT"),
        ("--", "there is no command behind --"),
        ("-p 1 -- true", "do not go with a command"),
        ("-C 1 -- true", "do not go with a command"),
        ("--unknown", "unrecognized arguments: --unknown"),
    ],
)
def test_refused(line: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(line.split())
    assert caught.value.code == 2
    assert problem in capsys.readouterr().err


def test_help_names_every_option_of_bcc(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    for option in (
        *("-p", "-L", "-U", "-K", "-F", "-c", "-d", "-a", "-I", "-f", "-C", "-A"),
        *("--hash-storage-size", "--stack-storage-size", "--cgroupmap", "--mntnsmap"),
    ):
        assert f" {option}" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "",
            "Sampling at 49 Hertz of all threads by user + kernel stack... Hit Ctrl-C to end.",
        ),
        ("5", "Sampling at 49 Hertz of all threads by user + kernel stack for 5 secs."),
        (
            "-c 1000 -p 2040,131 -U 0.5",
            "Sampling at every 1000 events of PID [2040, 131] by user stack for 0.5 secs.",
        ),
        (
            "-F 99 -L 7 -K -C 2 1",
            "Sampling at 99 Hertz of TID [7] by kernel stack on CPU#2 for 1 secs.",
        ),
        (
            "-G /x 1",
            "Sampling at 49 Hertz of all threads in cgroup /x by user + kernel stack for 1 secs.",
        ),
        (
            "-- make test",
            "Sampling at 49 Hertz of command 'make' by user + kernel stack until it ends.",
        ),
    ],
)
def test_title(line: str, expected: str) -> None:
    assert title(parse(line.split())) == expected
