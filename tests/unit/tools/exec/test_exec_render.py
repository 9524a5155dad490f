"""Processes as text and as JSON, and the command line."""

from __future__ import annotations

import json
import shlex

import pytest

from purebpf.cli.event_lines import fit_path
from purebpf.measure.event_session import loss_of
from purebpf.measure.event_text import decode, join_names, join_path
from purebpf.tools.exec.events import Ended, Executed, Refused, Task
from purebpf.tools.exec.options import parse
from purebpf.tools.exec.render import JsonPrinter, TextPrinter

TASK = Task(1_795_359_601_531_000_000, 3902, 3902, 3901, 0, "ls", "ssh.service")
EVENTS = (
    Executed(TASK, "/bin/ls", "/usr/bin/ls", ("ls", "a b", "\x1b[31m\n"), 0),
    Executed(TASK, "/bin/ls", "/usr/bin/ls", ("ls", "x" * 99), 54321),
    Executed(TASK, "/bin/ls", "/usr/bin/ls", (), 0),
    Refused(TASK, "/bin/nope", 2),
    Ended(TASK, 3, None, False, 20_600_000),
    Ended(TASK, None, 11, True, 875_000),
    Ended(TASK, None, 40, False, 7_500_000_000_000),
)
MORE = " ... (7 bytes more)"
COUNTS = {"events_full": 3, "children_missed": 0, "recursion_misses": 0, "mine": 1}


def test_the_text_is_this() -> None:
    printer = TextPrinter(cgroups=True)
    text = "".join([*printer.begin(None), *printer.show(EVENTS), *printer.end(loss_of(COUNTS, {}))])
    before = "    3902    3901     0 ls              ssh.service          "
    assert text.splitlines() == [
        "EVENT    PID    PPID   UID COMM            CONTAINER            WHAT",
        f"exec{before}ls 'a b' '?[31m?'",
        f"exec{before}ls {'x' * 99} ... (54321 bytes more)",
        f"exec{before}/bin/ls",
        f"fail{before}ENOENT /bin/nope",
        f"exit{before}status 3 after 20.6 ms",
        f"exit{before}SIGSEGV (core dumped) after 875 us",
        f"exit{before}signal 40 after 2.08 h",
    ]


def size_of(arguments: list[str]) -> int:
    """Bytes, each argument with its NUL."""
    return sum(len(argument.encode()) + 1 for argument in arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("sh", "-c", "x" * 9000, "last"),
        ("sh", "'" * 9000),
        ("true", *["ab"] * 5000),
        ("\u00e4" * 9999,),
    ],
    ids=["long", "quotes", "many", "letters of two bytes"],
)
def test_long_arguments_are_cut_and_counted(arguments: tuple[str, ...]) -> None:
    event = Executed(TASK, "/bin/sh", "/bin/sh", arguments, 7)
    columns = len(TextPrinter().line(event._replace(arguments=("",)), None)) - len("''" + MORE)
    shown, _, more = TextPrinter().line(event, None)[columns:].partition(" ... (")
    words = shlex.split(shown)
    assert 4000 < len(shown) <= 4096 + len("''")
    assert [
        argument[: len(word)] for argument, word in zip(arguments, words, strict=False)
    ] == words
    ended_within = words[-1] != arguments[len(words) - 1]
    left_out = size_of(list(arguments)) - size_of(words) + ended_within
    assert more == f"{left_out + 7} bytes more)"
    whole = TextPrinter(whole=True).line(event, None)
    assert whole[columns:] == shlex.join(arguments) + MORE


def test_a_terminal_has_lines_of_its_width() -> None:
    printer = TextPrinter()
    lines = [*printer.begin(80), *printer.show(EVENTS)]
    assert {len(line) for line in lines if line.endswith("...\n")} == {81}
    assert all(len(line) <= 81 for line in lines)


def test_json_has_all_of_it() -> None:
    printer = JsonPrinter()
    first, *_, dumped, timed, loss = map(
        json.loads, [*printer.show(EVENTS), *printer.end(loss_of(COUNTS, {"mine": "marks"}))]
    )
    assert first == {
        "event": "exec",
        "time": "2026-11-22T15:00:01.531000000Z",
        "pid": 3902,
        "tid": 3902,
        "ppid": 3901,
        "uid": 0,
        "comm": "ls",
        "cgroup": "ssh.service",
        "path": "/bin/ls",
        "executable": "/usr/bin/ls",
        "arguments": ["ls", "a b", "\x1b[31m\n"],
        "cut_bytes": 0,
    }
    assert (dumped["signal"], dumped["dumped_core"], dumped["status"]) == ("SIGSEGV", True, None)
    assert timed["lifetime_ns"] == 7_500_000_000_000
    assert loss == {"event": "loss", "schema": "purebpf.events/1", "loss": COUNTS}


def test_a_note_is_not_a_loss() -> None:
    counts = {**COUNTS, "events_full": 0}
    assert not loss_of(counts, {"mine": "note: marks were made"}).any
    loss = loss_of(counts, {"mine": "marks were made"})
    assert loss.any
    assert loss.causes[0].what == "1 mark was made"


def test_names_become_paths() -> None:
    assert join_names(b"lib\0usr\0", whole=True) == "/usr/lib"
    assert join_names(b"lib\0usr\0", whole=False) == ".../usr/lib"
    assert join_names(b"", whole=True) == "/"
    assert join_names(b"", whole=False) == "..."
    assert join_path("/usr", "././a") == "/usr/a"
    assert join_path("/", "a/./b") == "/a/./b"
    assert join_path("/usr", ".") == "/usr"
    assert decode(b"a\xff\0b") == "a\\xff"


def test_the_end_of_a_path_is_what_fits() -> None:
    assert fit_path("12345 ", "/a/b/c", None) == "12345 /a/b/c"
    assert fit_path("12345 ", "/a/b/c", 12) == "12345 /a/b/c"
    assert fit_path("12345 ", "/a/b/c", 11) == "12345 .../c"


def test_options_are_a_request_and_a_view() -> None:
    options, view, columns = parse(
        ["--failed", "--tree", "-p", "185", "--format", "json", "-T", "5"]
    )
    assert (options.failed, options.tree, options.pids, options.duration_s) == (
        True,
        True,
        (185,),
        5,
    )
    assert view.format == "json"
    assert columns == (True, False, False, None)


def test_a_command_excludes_processes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(["-p", "1", "--", "true"])
    assert "exclude a command" in capsys.readouterr().err


def test_the_parent_of_a_tree_stands_above_the_columns() -> None:
    first, second = TextPrinter(above=["children of 7: sh collect.sh"]).header().splitlines()
    assert first == "children of 7: sh collect.sh"
    assert second.startswith("EVENT")
