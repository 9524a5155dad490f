"""Stacks at every instruction of V8's code: callers are right, or the stack is cut, seldom."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from purebpf.symbols.frame import Frame
from tests.support.programs import nodes
from tests.support.programs.stepped_thread import SteppedStack, stepped

pytestmark = [
    pytest.mark.needs(
        *("bpf", "task_pt_regs", "vmlinux_btf", "atomic_fetch", "tracefs", "clang", "x86_64")
    ),
    pytest.mark.skipif(not nodes.every(), reason="there is no node"),
    pytest.mark.nightly,
]
SOURCE = Path(__file__).parents[3] / "data/javascript/steps.js"
LINES = SOURCE.read_text().splitlines()
BURSTS, STEPS = 40, 500
CALLERS = {
    "compare": "viaSort",
    "digit": "viaReplace",
    "generated": "viaGenerator",
    "boundLeaf": "applied",
    "get value": "getter",
    "Built": "built",
}
"""Functions that V8 calls, or that have other names where they are called."""


@contextmanager
def started(node: Path) -> Iterator[int]:
    with subprocess.Popen([node, SOURCE], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(1)
            yield process.pid
        finally:
            process.kill()


def is_call(callee: str, caller: Frame) -> bool:
    """Return True if a function of the program calls another one on its line."""
    if callee in CALLERS:
        return caller.name == CALLERS[callee]
    if not callee or callee.startswith("<anonymous"):
        return caller.name == "viaMap"
    return not caller.line or f"{callee}(" in LINES[caller.line - 1]


def problem(stack: SteppedStack) -> str:
    """Why a stack is cut, or cannot be; "" for a whole one that is right."""
    frames = [frame for frame in stack.frames if isinstance(frame, Frame)]
    own = [frame for frame in frames if frame.file == str(SOURCE)]
    if stack.end:
        return f"cut: {stack.end}"
    if "main" not in [frame.name for frame in own]:
        return "cut: without a reason"
    for callee, caller in pairwise(own):
        if caller.name == "main" and callee.name not in ("turn", "seldom"):
            return f"false: {callee.name} < main"
        if callee.name != "main" and not is_call(callee.name, caller):
            return f"false: {callee.name} < {caller.name}:{caller.line}"
    return ""


@pytest.mark.parametrize("node", nodes.params())
def test_callers_are_right_at_every_instruction(node: Path) -> None:
    problems = Counter[str]()
    walked = 0
    with started(node) as pid, stepped(pid, pid) as thread:
        for _ in range(3):  # the first ones have no tables and no names
            thread.burst(STEPS)
            thread.wait(1)
        for _ in range(BURSTS):
            thread.burst(STEPS)
            for stack in thread.stacks():
                walked += 1
                if why := problem(stack):
                    problems[why] += 1
    print(f"{node.parts[-3]}: {walked} walked, {dict(problems)}")
    assert walked > 0.9 * BURSTS * STEPS
    assert not [why for why in problems if why.startswith("false")], problems
    assert problems.total() <= 0.005 * walked
