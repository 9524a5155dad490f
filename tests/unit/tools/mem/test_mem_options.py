"""Command lines of mem: what they ask for, and how wrong ones are reported."""

from __future__ import annotations

import pytest

from purebpf.cli.destination import Destination, ResultOptions
from purebpf.tools.mem.options import parse
from purebpf.tools.mem.request import MemOptions, profile_title, title, with_limits

ALL = """\
-p 12,13 --tree -G /sys/fs/cgroup --show faults --library libjemalloc.so.2 --library /a
--allocations 9 --hash-storage-size 8 --stack-storage-size 7 --call-graph fp --no-python --native
--lines --strict --cost 0.5 -o out.html 6"""


def test_nothing_is_growth_and_faults_of_the_machine() -> None:
    options, view = parse([])
    assert options == MemOptions()
    assert view == ResultOptions()
    assert (options.traces_malloc, options.shown) == (False, "grown")


def test_every_option_becomes_its_field() -> None:
    options, view = parse(ALL.split())
    assert options == MemOptions(
        pids=(12, 13),
        tree=True,
        cgroup="/sys/fs/cgroup",
        show="faults",
        libraries=("libjemalloc.so.2", "/a"),
        allocation_storage_size=9,
        hash_storage_size=8,
        stack_storage_size=7,
        call_graph="fp",
        python=False,
        python_lines=True,
        native=True,
        duration_s=6.0,
        cost_percent=0.5,
    )
    assert view == ResultOptions(to=(Destination("html", "out.html"),), lines=True, strict=True)


@pytest.mark.parametrize(
    ("words", "percent", "lines"),
    [
        ("-p 1", 5.0, True),
        ("-p 1 --cost 0", 0.0, True),
        ("-- true", None, False),
        ("", None, False),
    ],
)
def test_a_running_target_has_lines_and_a_limit(
    words: str, percent: float | None, lines: bool
) -> None:
    options = with_limits(parse(words.split())[0])
    assert (options.cost_percent, options.python_lines) == (percent, lines)


@pytest.mark.parametrize("target", ["-p 1", "-t 1", "-G /c", "--library x", "-- true"])
def test_a_target_traces_malloc(target: str) -> None:
    options, _ = parse(target.split())
    assert options.traces_malloc
    assert options.shown == "unfreed"


def test_without_malloc_growth_is_shown() -> None:
    options, _ = parse(["--no-malloc", "-p", "1"])
    assert (options.traces_malloc, options.shown) == (False, "grown")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--show unfreed 5", "--show unfreed needs a target"),
        ("--show allocated --no-malloc -p 1", "--show allocated needs a target"),
        ("--no-malloc --library a", "exclude each other"),
        ("--show heap", "invalid choice: 'heap'"),
        ("--cpu=0", "unrecognized arguments: --cpu"),
        ("-p 1 -- true", "exclude a command"),
    ],
)
def test_wrong_options_end_with_2(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(words.split())
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_the_title_says_what_is_traced() -> None:
    assert title(MemOptions(pids=(7,), duration_s=5.0)) == (
        "Tracing malloc, growth and page faults of PID [7] by user stack for 5 secs."
    )
    assert profile_title(MemOptions(pids=(7,), duration_s=5.0), "unfreed") == (
        "Memory not freed of PID [7] by user stack for 5 secs."
    )
    assert title(MemOptions()) == (
        "Tracing growth and page faults of all processes by user stack... Hit Ctrl-C to end."
    )
