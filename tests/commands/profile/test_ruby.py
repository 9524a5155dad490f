"""`profile`, `offcpu` and `wall` show Ruby methods: only stacks that the program can have."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.nightly import by_day
from tests.support.programs import rubies

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "vmlinux_btf", "x86_64"),
    pytest.mark.skipif(not rubies.default(), reason="there is no ruby"),
]
PROGRAM = Path(__file__).parents[2] / "data/ruby/busy.rb"
CALLERS = {
    "<main>": {""},
    "block in <main>": {""},
    "run": {"<main>"},
    "loop": {"run", "block in <main>"},
    "block in run": {"loop"},
    "block (2 levels) in <main>": {"loop"},
    "spin": {"block in run", "block in gen", "block in <class:Work>"},
    "sorts": {"block in run"},
    "map": {"sorts"},
    "each": {"map"},
    "block in sorts": {"each", "sort"},
    "sort": {"sorts"},
    "outer": {"block in run"},
    "gen": {"outer"},
    "times": {"gen", "texts"},
    "block in gen": {"times"},
    "block in outer": {"block in gen"},
    "block in <class:Work>": {"block in run"},
    "texts": {"block in run"},
    "block in texts": {"times"},
    "gsub": {"block in texts"},
    "waits": {"block in run", "block (2 levels) in <main>"},
    "naps": {"waits", "naps"},
    "sleep": {"naps"},
}
"""Of each function of the program, the functions that call it."""


@contextmanager
def running(*arguments: str) -> Iterator[int]:
    """The Ruby program, which runs until it is killed; `arguments` begin with Ruby's options."""
    (ruby,) = rubies.default()
    options = [each for each in arguments if each.startswith("-")]
    rest = [each for each in arguments if not each.startswith("-")]
    line = [ruby, *options, PROGRAM, *rest]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.3)
            yield process.pid
        finally:
            process.kill()


def measure(command: str, pid: int, *arguments: str) -> Counter[tuple[str, ...]]:
    """The Ruby functions of each stack, outermost first, with their weights."""
    line = [sys.executable, "-m", "purebpf", command, "--folded", "-p", str(pid), *arguments]
    text = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    stacks = Counter[tuple[str, ...]]()
    for folded in text.splitlines():
        stack, _, count = folded.rpartition(" ")
        parts = [each.partition("_[")[0] for each in stack.split(";")]  # `wall` has states
        functions = tuple(each for each in parts if each in CALLERS)
        if len(parts) > 1 and parts[1] != "[no stack]":  # of a wait that had begun before
            stacks[functions] += int(count)
    return stacks


def is_possible(functions: tuple[str, ...]) -> bool:
    """Return True if each function can call the next one, from the first line of the program on."""
    pairs = zip(("", *functions), functions, strict=False)
    return bool(functions) and all(caller in CALLERS[called] for caller, called in pairs)


def check(stacks: Counter[tuple[str, ...]], *wanted: str) -> None:
    """At least 99 % of the weight is in stacks that the program can have."""
    total = sum(stacks.values())
    wrong = {functions: count for functions, count in stacks.items() if not is_possible(functions)}
    assert sum(wrong.values()) * 100 <= total, wrong
    assert set(wanted) <= {each for functions in stacks for each in functions}


@pytest.mark.parametrize("options", by_day([(), ("--yjit",)], [("--yjit",)]), ids=["plain", "yjit"])
def test_stacks_are_possible(options: tuple[str, ...]) -> None:
    with running(*options) as pid:
        stacks = measure("profile", pid, "-F", "199", "6")
    check(stacks, "spin", "gsub", "block in gen", "block in <class:Work>")


@pytest.mark.parametrize("command", by_day(["offcpu", "wall"], ["wall"]))
def test_waits_of_threads_are_in_their_functions(command: str) -> None:
    with running("threads") as pid:
        stacks = measure(command, pid, "4")
    asleep = {each for each in stacks if each[-1:] == ("sleep",)}
    naps = ("waits", "naps", "naps", "naps", "sleep")
    assert asleep == {
        ("<main>", "run", "loop", "block in run", *naps),
        ("block in <main>", "loop", "block (2 levels) in <main>", *naps),
    }
    check(Counter({each: count for each, count in stacks.items() if each}), "sleep")


def test_a_thread_that_sleeps_all_the_time_has_its_functions(tmp_path: Path) -> None:
    (ruby,) = rubies.default()
    program = tmp_path / "still.rb"
    program.write_text(
        "def stay = sleep\ndef work = [1].each { stay }\nputs 1\nSTDOUT.flush\nwork\n"
    )
    with subprocess.Popen([ruby, program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.3)
        line = [sys.executable, "-m", "purebpf", "offcpu", "--folded", "2", "-p", str(process.pid)]
        text = subprocess.run(line, capture_output=True, text=True, check=True).stdout
        process.kill()
    assert ";<main>;work;each;block in work;stay;sleep;" in text


def test_lines_are_those_of_the_calls(tmp_path: Path) -> None:
    source = PROGRAM.read_text().splitlines()
    result = tmp_path / "result.json"
    line = [sys.executable, "-m", "purebpf", "offcpu", "--lines", "-o", result, "3", "-p"]
    with running() as pid:
        subprocess.run([*line, str(pid)], capture_output=True, check=True)
    frames = json.loads(result.read_text())["frames"]
    found = {(each.get("name"), each.get("line")) for each in frames}
    calls = {
        "naps": "sleep(0.003)",
        "waits": "    naps(2)",
        "block in run": "      waits",
        "<main>": "App.run",
    }
    for name, call in calls.items():
        assert (
            name,
            next(
                at
                for at, each in enumerate(source, 1)
                if each.startswith(call) or call.strip() == each.strip()
            ),
        ) in found
