"""The command line of the profiler, without a kernel."""

from __future__ import annotations

import pytest

from purebpf.cli.destination import Destination, ResultOptions
from purebpf.tools.profile.options import parse
from purebpf.tools.profile.request import ProfileOptions, title
from tests.support.command_line import asking

FOLDED = Destination("folded", None)


def asked(**fields: object) -> tuple[ProfileOptions, ResultOptions]:
    return asking((ProfileOptions(), ResultOptions()), **fields)  # type: ignore[return-value]


def test_an_empty_command_line_asks_for_the_defaults() -> None:
    assert parse([]) == asked()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("5", asked(duration_s=5)),
        ("-F 99 0.5", asked(frequency=99, duration_s=0.5)),
        ("-c 1000000", asked(period=1000000)),
        ("--period 1000000", asked(period=1000000)),
        ("--count 1000000", asked(period=1000000)),  # bcc's word
        ("-p 185,2040", asked(pids=(185, 2040))),
        ("--pid 185", asked(pids=(185,))),
        ("-L 7", asked(tids=(7,))),
        ("-U", asked(kernel_stacks=False)),
        ("-K", asked(user_stacks=False)),
        ("-I", asked(include_idle=True)),
        ("-C 0-1,3", asked(cpus=(0, 1, 3))),
        ("-f", asked(to=(FOLDED,))),
        ("-f -a -d", asked(to=(FOLDED,), annotations=True, delimited=True)),
        ("--format json", asked(to=(Destination("json", None),), timeline=True)),
        ("-A", asked(addresses=True)),
        ("-G /sys/fs/cgroup/x", asked(cgroup="/sys/fs/cgroup/x")),
        ("--cgroupmap /sys/fs/bpf/c", asked(cgroup_map="/sys/fs/bpf/c")),
        ("--mntnsmap /sys/fs/bpf/m", asked(mount_namespace_map="/sys/fs/bpf/m")),
        ("--hash-storage-size 1", asked(hash_storage_size=1)),
        ("--stack-storage-size 2", asked(stack_storage_size=2)),
        ("-o out", asked(to=(Destination("text", "out"),))),
        (
            "-o a.html -o b.pb.gz",
            asked(
                to=(Destination("html", "a.html"), Destination("pprof", "b.pb.gz")), timeline=True
            ),
        ),
        ("--serve", asked(timeline=True, serve=("127.0.0.1", 0))),
        ("--serve :80", asked(timeline=True, serve=("127.0.0.1", 80))),
        ("--serve [::1]:8080 5", asked(timeline=True, serve=("::1", 8080), duration_s=5)),
        ("--strict", asked(strict=True)),
        ("-- make -p -f x", asked(command=("make", "-p", "-f", "x"))),
        ("2 -F 99 -- a -- b", asked(duration_s=2, frequency=99, command=("a", "--", "b"))),
    ],
)
def test_a_command_line_becomes_its_options(
    line: str, expected: tuple[ProfileOptions, ResultOptions]
) -> None:
    assert parse(line.split()) == expected


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("-p 1 -L 2", "not allowed with argument"),
        ("-U -K", "not allowed with argument"),
        ("-F 1 -c 1", "not allowed with argument"),
        ("-f --format json", "each of several formats needs its own -o"),
        ("-F 0", "argument -F/--frequency/--freq: '0' must be above zero"),
        ("-c -5", "argument -c/--period"),
        ("-p x", "argument -p/--pid: 'x' is not a PID"),
        ("-C 1-", "argument -C/--cpu: '' is not a CPU number"),
        ("0", "argument duration: '0' must be above zero"),
        ("five", "argument duration: 'five' is not a duration such as 500ms"),
        ("--format svg", "'svg'; known: text"),
        ("--hash-storage-size 0", "argument --hash-storage-size"),
        ("--serve 5", "argument --serve: '5' is not an address such as"),
        ("--serve :99999", "':99999' is not an address such as"),
        ("--", "a command is missing after --"),
        ("-p 1 -- true", "exclude a command"),
        ("-C 1 -- true", "exclude a command"),
        ("--unknown", "unrecognized arguments: --unknown"),
    ],
)
def test_a_wrong_command_line_is_refused(
    line: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
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
def test_the_title_says_what_is_sampled(line: str, expected: str) -> None:
    assert title(parse(line.split())[0]) == expected
