"""The JSON of every command meets its schema in docs/schemas."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import jsonschema
import pytest

from purebpf.tools.completion.model import describe_commands
from tests.support.environment import ROOT, run
from tests.support.nightly import by_day

pytestmark = [pytest.mark.any_kernel, pytest.mark.needs("bpf", "perf_event")]

_READ = "open('/etc/hostname').read()"
_PYTHON = ("--", sys.executable, "-c", f"import os; os.getppid(); {_READ}; sum(range(10**7))")
_STACKS = "tests/data/stacks.folded"
LINES: dict[str, tuple[tuple[str, ...], ...]] = {
    "triage": (("--json", "2"),),
    "dump": (("--json", str(os.getpid())),),
    "doctor": (("--json", "--all"),),
    "profile": (("--format", "json", "-F", "499", *_PYTHON),),
    "offcpu": (("--format", "json", "--waker", "--thresh", "0", "0.3"),),
    "wall": (("--format", "json", "0.3"),),
    "lock": (
        ("--format", "json", "--slower", "0", "--stacks", "-i", "0.3", "0.7"),
        ("--format", "json", "--userspace", "--slower", "0", *_PYTHON),
    ),
    "latency": (
        ("libc.so.6:malloc", "--format", "json", "--slower", "0", "--stacks", *_PYTHON),
        ("libc.so.6:malloc", "--format", "json", "--count", *_PYTHON),
    ),
    "runqlat": (("--format", "json", "-P", "0.3", "2"),),
    "cpudist": (("--format", "json", "0.3", "1"),),
    "types": (("--format", "json", *_PYTHON),),
    "stat": (("--format", "json", "-r", "2", *_PYTHON), ("--format", "json", "-A", "0.3")),
    "kwork": (("--format", "json", "0.3"),),
    "summary": (
        ("--format", "json", "--faults", "all", "--mode", "process", *_PYTHON),
        ("--format", "json", "-i", "0.2", "--inflight", "0.5"),
    ),
    "trace": (
        ("--format", "json", "--call-graph", "auto", "-e", "getppid", *_PYTHON),
        ("--format", "json", "-S", "-e", "getppid,sched:sched_switch", *_PYTHON),
    ),
    "exec": (("--format", "json", *_PYTHON), ("--format", "json", "--summary", *_PYTHON)),
    "open": (
        ("--format", "json", *_PYTHON),
        ("--format", "json", "--summary", *_PYTHON),
        ("--format", "json", "--summary", "--by", "process", *_PYTHON),
    ),
    "io": (("--format", "json", "--slower", "0", "0.5"),),
    "tcp": (("--format", "json", "0.5"), ("--format", "json", "--summary", "0.5")),
    "mem": (("--format", "json", *_PYTHON),),
    "convert": ((_STACKS, "--format", "json"),),
    "diff": ((_STACKS, _STACKS, "--format", "json"),),
    "inspect": (
        ("--json", "tests/data/load_counter.bpf.o"),
        ("--json", "--sections", sys.executable),
    ),
}
"""Command lines that print JSON with everything that a command knows."""

ELSEWHERE = {
    "fleet": "prints the documents of convert and diff",
    "report": "prints the document of convert; tests/unit/results read it",
    "script": "prints what bpftrace prints; tests/commands/script compare the two",
}


def documents(text: str) -> list[dict[str, object]]:
    """One, or one a line."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def schema_of(documents: list[dict[str, object]]) -> str:
    """Return the name of the file; the last document of a stream says it."""
    named = documents[-1]["schema"]
    return "triage-1" if named == 1 else str(named).removeprefix("purebpf.").replace("/", "-")


CASES = [(name, line) for name, lines in LINES.items() for line in lines]
DAY = [case for case in CASES if case[0] in ("exec", "inspect", "kwork", "profile", "summary")]


@pytest.mark.parametrize("case", by_day(CASES, DAY), ids=lambda case: case[0])
def test_the_json_of_a_command_meets_its_schema(case: tuple[str, tuple[str, ...]]) -> None:
    name, line = case
    done = run(name, *line)
    made = documents(done.stdout)
    kept = json.loads(Path(ROOT / f"docs/schemas/{schema_of(made)}.json").read_text())
    validator = jsonschema.Draft202012Validator(kept)
    for document in made:
        validator.validate(document)


def test_no_command_with_json_is_forgotten() -> None:
    with_json = {
        command.name
        for command in describe_commands()
        for option in command.options
        if "--json" in option.flags
        or ("--format" in option.flags and option.value and "json" in str(option.value))
    }
    with_json |= {"profile", "offcpu", "wall", "mem", "report", "convert"}
    assert with_json == {*LINES, *ELSEWHERE}
