"""Stacks of arm64, walked in BPF and copied: run in a guest (docs/testing.md).

The programs are built before, by the cross compiler: the guest has none.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from purebpf.unwind.reason import Reason
from tests.support.programs.arm64 import FOLDER
from tests.support.programs.stack_walks import (
    check_counters,
    check_equality,
    ends_of_traces,
    names_of,
    share_in_bpf,
    walk_run,
)

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "arm64_programs"),
]

_CHAIN = ["main", "level1", "level2", "level3", "level4", "level5", "leaf"]
_PYTHON = """
import json, re
def fibonacci(n): return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
values = {str(i): [i] * 5 for i in range(500)}
while True:
    fibonacci(15)
    json.loads(json.dumps(values))
    re.sub("[0-9]+", "x", "a1b22c333" * 100)
"""


@pytest.mark.parametrize("name", ["chain", "chain-static", "chain-signed", "chain-fp"])
def test_a_known_chain_is_walked_in_bpf(name: str) -> None:
    run = walk_run(FOLDER / name)
    check_counters(run)
    assert ends_of_traces(run) <= {Reason.COMPLETE, Reason.FINISHED}
    assert share_in_bpf(run) > 0.98
    traces = Counter(tuple(each.trace.frames) for each in run.found if not each.is_copied)
    named = {trace: names_of(run, FOLDER / name, list(trace)) for trace in traces}
    assert all(names == _CHAIN[: len(names)] for names in named.values())
    in_leaf = sum(traces[trace] for trace, names in named.items() if names == _CHAIN)
    assert in_leaf > traces.total() / 4


@pytest.mark.parametrize("name", ["chain", "deep", "shapes", "shapes-lazy", "clock"])
def test_walks_equal_the_evaluator(name: str) -> None:
    run = walk_run(FOLDER / name, copies_all=True, copies_per_second=0)
    print(share_in_bpf(run), run.ends, Counter(each.trace.reason for each in run.found), run.stats)
    check_counters(run)
    check_equality(run)
    assert share_in_bpf(run) > 0.9


@contextmanager
def _running(*command: object) -> Iterator[int]:
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL) as child:
        try:
            yield child.pid
        finally:
            child.kill()


def _purebpf(*arguments: object) -> str:
    command = [sys.executable, "-m", "purebpf", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stderr)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _stacks(found: dict[str, Any]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """The names of each stack from its root on, and the rest of it."""
    names = [frame["name"] for frame in found["frames"]]
    for stack in found["stacks"]:
        yield [names[number] for number in reversed(stack["user"])], stack


def _check(text: str, chain: list[str]) -> None:
    """Every stack is whole, and those of the leaf are the chain."""
    whole = Counter[bool]()
    in_leaf = 0
    for frames, stack in _stacks(json.loads(text)):
        if not frames:  # in the kernel, as the program began
            continue
        whole["cut" not in stack] += stack["weight"]
        own = frames[frames.index("main") :] if "main" in frames else frames
        assert own == chain[: len(own)] or "cut" in stack, frames
        in_leaf += stack["weight"] * (own == chain)
    print(whole, in_leaf)
    assert whole[True] > 50
    assert whole[False] <= whole.total() / 50  # lost copies, while Python has to wait for a CPU
    assert in_leaf > whole[True] / 4


@pytest.mark.parametrize(
    ("name", "mode"), [("chain", "tables"), ("chain", "copy"), ("chain-fp", "fp")]
)
def test_profile_has_whole_stacks(name: str, mode: str) -> None:
    with _running(FOLDER / name) as pid:
        options = ("--call-graph", mode, "--format", "json", "-F", 47, "-U", "-p", pid)
        found = _purebpf("profile", *options, 10)
    _check(found, _CHAIN)


def test_a_record_is_unwound_when_it_is_read(tmp_path: Path) -> None:
    """Registers and stacks as the kernel puts them into samples of perf.data."""
    data = tmp_path / "perf.data"
    with _running(FOLDER / "chain") as pid:
        _purebpf("record", "--call-graph", "copy", "-F", 47, "-p", pid, "-o", data, 10)
    _check(_purebpf("report", "-i", data, "--format", "json"), _CHAIN)


@pytest.mark.parametrize("mode", ["tables", "copy"])
def test_where_a_thread_waits_is_whole(mode: str) -> None:
    with _running(FOLDER / "sleeps") as pid:
        options = ("--call-graph", mode, "--format", "json", "-U", "-p", pid)
        found = json.loads(_purebpf("offcpu", *options, 8))
    stacks = {tuple(frames) for frames, _ in _stacks(found)}
    chains = [
        each[each.index("main") : each.index("level5") + 1] for each in stacks if "level5" in each
    ]
    print(stacks)
    assert chains
    assert all(list(chain) == _CHAIN[:-1] for chain in chains)
    assert all("cut" not in stack for stack in found["stacks"])


def test_python_of_the_distribution_is_whole() -> None:
    with _running(sys.executable, "-c", _PYTHON) as pid:
        options = ("--no-python", "--format", "json", "-F", 47, "-U", "-p", pid)
        found = json.loads(_purebpf("profile", *options, 20))
    whole = Counter[bool]()
    for stack in found["stacks"]:
        whole["cut" not in stack] += stack["weight"]
    print(whole, found["about"]["call_graph"], found["loss"])
    assert found["about"]["call_graph"] == "tables"
    assert whole[True] > 100
    assert whole[False] <= whole.total() / 20
