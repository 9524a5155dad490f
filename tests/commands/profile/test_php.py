"""`profile`, `offcpu` and `wall` show PHP functions: only stacks that the program can have."""

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
from tests.support.programs import phps

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "vmlinux_btf", "x86_64"),
    pytest.mark.skipif(not phps.default(), reason="there is no php"),
]
PROGRAM = Path(__file__).parents[2] / "data/php/busy.php"
CACHE = ("-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=16M")
OPTIONS: list[tuple[str, ...]] = [
    (),
    (*CACHE, "-d", "opcache.jit=off"),
    (*CACHE, "-d", "opcache.jit=function"),
    (*CACHE, "-d", "opcache.jit=tracing"),
]
CALLERS = {
    "{main}": {""},
    "App\\main": {"{main}"},
    "App\\Work::spin": {"App\\main", "App\\Work::gen"},
    "App\\Work::gen": {"App\\Work::outer"},
    "App\\Work::outer": {"App\\main"},
    "App\\Work::sorts": {"App\\main"},
    "usort": {"App\\Work::sorts"},
    "App\\Work::App\\{closure}": {"usort"},
    "App\\texts": {"App\\main"},
    "preg_replace": {"App\\texts"},
    "str_repeat": {"App\\texts"},
    "App\\waits": {"App\\main"},
    "App\\naps": {"App\\waits", "App\\naps"},
    "time_nanosleep": {"App\\naps"},
}
"""Of each function of the program, the functions that call it."""


@contextmanager
def running(*options: str) -> Iterator[int]:
    """The PHP program, which runs until it is killed."""
    (php,) = phps.default()
    with subprocess.Popen([php, *options, PROGRAM], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.3)
            yield process.pid
        finally:
            process.kill()


def measure(command: str, pid: int, *arguments: str) -> Counter[tuple[str, ...]]:
    """The PHP functions of each stack, outermost first, with their weights."""
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


@pytest.mark.parametrize(
    "options",
    by_day(OPTIONS, [OPTIONS[3]]),
    ids=["plain", "cached", "function", "tracing"],
)
def test_stacks_are_possible(options: tuple[str, ...]) -> None:
    with running(*options) as pid:
        stacks = measure("profile", pid, "-F", "199", "5")
    check(stacks, "App\\Work::spin", "App\\Work::sorts", "App\\Work::gen", "App\\texts")


@pytest.mark.parametrize("command", by_day(["offcpu", "wall"], ["offcpu"]))
def test_waits_are_in_their_functions(command: str) -> None:
    with running() as pid:
        stacks = measure(command, pid, "4")
    asleep = {each: count for each, count in stacks.items() if each[-1:] == ("time_nanosleep",)}
    assert set(asleep) == {
        ("{main}", "App\\main", "App\\waits", *("App\\naps",) * 3, "time_nanosleep")
    }
    check(stacks, "time_nanosleep")


def test_lines_are_those_of_the_calls(tmp_path: Path) -> None:
    source = PROGRAM.read_text().splitlines()
    result = tmp_path / "result.json"
    line = [sys.executable, "-m", "purebpf", "offcpu", "--lines", "-o", result, "3", "-p"]
    with running() as pid:
        subprocess.run([*line, str(pid)], capture_output=True, check=True)
    frames = json.loads(result.read_text())["frames"]
    found = {(each.get("name"), each.get("line")) for each in frames}
    calls = {
        "App\\naps": "time_nanosleep(",
        "App\\waits": "waits(): void",
        "App\\main": "    waits()",
    }
    for name, call in calls.items():
        assert (name, next(at for at, each in enumerate(source, 1) if call in each)) in found
