"""Stacks at every instruction of HotSpot's code: callers are right, or the stack is cut, seldom."""

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
from tests.support.programs import jvms
from tests.support.programs.stepped_thread import SteppedStack, stepped

pytestmark = [
    pytest.mark.needs(
        *("bpf", "task_pt_regs", "vmlinux_btf", "atomic_fetch", "tracefs", "clang", "javac"),
        "x86_64",
    ),
    pytest.mark.skipif(not jvms.every(), reason="there is no JVM"),
    pytest.mark.nightly,
]
SOURCE = Path(__file__).parents[3] / "data/java/Steps.java"
LINES = SOURCE.read_text().splitlines()
ROUNDS = 20_000
"""Of the program, until its methods are compiled."""
BURSTS, STEPS = 40, 500
MOST_CUT = 0.001
OPTIONS = (
    (),
    ("-Xint",),
    ("-XX:TieredStopAtLevel=1",),
    ("-XX:-TieredCompilation",),
    ("-XX:-Inline",),
)


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("steps")
    subprocess.run(["javac", "--release", "11", "-d", folder, SOURCE], check=True)
    return folder


@contextmanager
def started(home: Path, classes: Path, options: tuple[str, ...]) -> Iterator[int]:
    command = [home / "bin/java", *options, "-cp", classes, "Steps", str(ROUNDS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(1)
            yield process.pid
        finally:
            process.kill()


def main_thread(pid: int) -> int:
    """The thread that runs the program: java's first one waits for it."""

    def used(tid: str) -> int:
        text = Path(f"/proc/{pid}/task/{tid}/stat").read_text().rpartition(")")[2]
        return int(text.split()[11])

    tasks = [path.name for path in Path(f"/proc/{pid}/task").iterdir()]
    names = {tid: Path(f"/proc/{pid}/task/{tid}/comm").read_text().strip() for tid in tasks}
    return int(max((tid for tid in tasks if names[tid] in ("java", "main")), key=used))


def is_call(callee: str, caller: Frame) -> bool:
    """Return True if a function of the program calls another one on its line."""
    line = LINES[caller.line - 1]
    name = callee.rpartition(".")[2]
    if callee == "Steps$Key.<init>":
        return "new Key(" in line
    if name == "hashCode":
        return caller.name == "Steps.put"
    if name.startswith("lambda$"):
        return caller.name == "Steps.sorted"
    return f"{name}(" in line


def is_native(stack: SteppedStack) -> bool:
    """Return True if the thread was in a library, not in generated code."""
    leaf = stack.frames[0] if stack.frames else None
    return isinstance(leaf, Frame) and (".so" in leaf.module or leaf.module == "[vdso]")


def problem(stack: SteppedStack) -> str:
    """Why a stack is cut, or cannot be; "" for a whole one that is right."""
    frames = [frame for frame in stack.frames if isinstance(frame, Frame)]
    own = [each for each in frames if each.name.startswith("Steps") and "Lambda" not in each.name]
    if stack.end:
        return f"native: {stack.end}" if is_native(stack) else f"cut: {stack.end}"
    if not own or own[-1].name != "Steps.main":
        return "cut: without a reason"
    for callee, caller in pairwise(own):
        if caller.line and not is_call(callee.name, caller):
            return f"false: {callee.name} < {caller.name}:{caller.line}"
    return ""


@pytest.mark.parametrize("options", OPTIONS, ids=lambda each: "".join(each) or "default")
@pytest.mark.parametrize("home", jvms.params())
def test_callers_are_right_at_every_instruction(
    home: Path, classes: Path, options: tuple[str, ...]
) -> None:
    problems = Counter[str]()
    walked = 0
    with started(home, classes, options) as pid, stepped(pid, main_thread(pid)) as thread:
        for _ in range(3):  # the first ones have no tables and no names
            thread.burst(STEPS)
            thread.wait(1)
        for _ in range(BURSTS):
            thread.burst(STEPS)
            for stack in thread.stacks():
                walked += 1
                if why := problem(stack):
                    problems[why] += 1
    print(f"{home.name} {' '.join(options)}: {walked} walked, {dict(problems)}")
    assert walked > 0.9 * BURSTS * STEPS
    assert not [why for why in problems if why.startswith("false")], problems
    cut = sum(count for why, count in problems.items() if why.startswith("cut"))
    assert cut <= MOST_CUT * walked
