"""The command line of the recorder."""

from __future__ import annotations

import pytest

from purebpf.filter.fields import FIELDS, Field
from purebpf.loader.perf.event_parser import choose_event
from purebpf.tools.record.events import sample_type
from purebpf.tools.record.options import parse
from purebpf.tools.record.request import EventOption, RecordOptions, title


def test_a_filter_belongs_to_the_events_of_the_option_before_it() -> None:
    found = parse(
        ["-e", "cpu-clock,cpu/a=1,b=2/", "--filter", "pid == 1", "--filter", "cpu == 0", "-e", "cs"]
    )
    both = ("pid == 1", "cpu == 0")
    assert found.events == (
        EventOption("cpu-clock", both),
        EventOption("cpu/a=1,b=2/", both),
        EventOption("cs"),
    )


def test_a_filter_without_an_event_is_for_the_usual_one() -> None:
    assert parse(["--filter", "pid == 1"]).events == (EventOption("cycles", ("pid == 1",)),)


@pytest.mark.parametrize("argv", [["-g"], ["--call-graph", "fp"]])
def test_each_spelling_asks_for_call_chains(argv: list[str]) -> None:
    assert parse(argv).callchains


@pytest.mark.parametrize(
    ("mode", "copied", "pages"),
    [
        ("fp", 0, 512),
        ("copy", 16384, 4096),
        ("copy,65528", 65528, 4096),
        ("dwarf,8192", 8192, 4096),
    ],
)
def test_call_graphs_may_copy_stacks(mode: str, copied: int, pages: int) -> None:
    found = parse(["--call-graph", mode])
    assert (found.callchains, found.copy_bytes, found.pages) == (True, copied, pages)
    assert parse(["--call-graph", mode, "-m", "100"]).pages == 128


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["-a", "-p", "1"], "-a and -p exclude each other"),
        (["-u", "0", "-G", "/x"], "-u and -G exclude each other"),
        (["-F", "9", "-c", "9"], "not allowed with"),
        (["-F", "0"], "above zero"),
        (["--call-graph", "lbr"], "known: fp (frame pointers), copy[,BYTES]"),
        (["--call-graph", "fp,1"], "known: fp"),
        (["--call-graph", "copy,12"], "expected a multiple of 8 up to 65528"),
        (["--call-graph", "copy,65536"], "expected a multiple of 8 up to 65528"),
        (["--call-graph", "copy,"], "not a whole number"),
        (["--"], "a command is missing"),
        (["--filter", "pid == 1", "-e", "cs"], "--filter must follow the -e"),
        (["--explain"], "needs a filter"),
        (["-o", "-"], "cannot be a pipe"),
        (["-u", "nobody-is-called-that"], "unknown user"),
        (["-m", "262145"], "at most 262144 pages"),
        (["-m", "9000000000000000000"], "at most 262144 pages"),
    ],
)
def test_mistakes_are_usage_errors(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(argv)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "follows"),
    [(["--", "ls"], True), (["-a", "--", "ls"], False), (["-p", "1", "--", "ls"], False)],
)
def test_a_command_is_the_target_unless_there_is_another(argv: list[str], follows: bool) -> None:
    assert parse(argv).follows_command == follows


def test_a_ring_has_a_power_of_two_of_pages() -> None:
    assert parse(["-m", "100"]).ring_pages == 128
    assert parse(["-m", "262144"]).ring_pages == 262144


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (RecordOptions(), "Recording every process"),
        (RecordOptions(cpus=(0, 2)), "Recording every process on CPU 0,2"),
        (RecordOptions(pids=(1, 2)), "Recording process 1, 2"),
        (RecordOptions(command=("make", "test")), "Recording make test"),
    ],
)
def test_the_title_says_what_is_recorded(options: RecordOptions, said: str) -> None:
    assert title(options) == said


@pytest.mark.parametrize("field", [field for field in FIELDS.values() if field.option])
def test_the_option_that_a_field_needs_is_there(field: Field) -> None:
    options = parse([field.option, "1"])
    assert sample_type(options, choose_event("task-clock")) & field.bits


def test_an_empty_event_is_not_the_usual_one() -> None:
    assert parse(["-e", "", "1"]).events == (EventOption(""),)
