"""`--async`: stacks go on with the tasks that await the one that runs, as the program knows."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from purebpf import Frame
from purebpf.results import Row
from purebpf.tools import offcpu, wall
from purebpf.tools.offcpu import OffCpu
from purebpf.tools.profile import ProfileOptions, Profiler
from purebpf.tools.wall import Wall
from purebpf.tools.wall.session import WallResult
from tests.commands.profile.test_python_frames import chains_of, folded, started
from tests.support.environment import run
from tests.support.nightly import by_day
from tests.support.programs import pythons
from tests.support.programs.awaiting import AWAITING

pytestmark = pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf")
_NONE = pytest.param(None, marks=pytest.mark.skip("no CPython 3.14 or later on this machine"))
NEWEST = [
    pytest.param(each, id=f"{each.version[1]}-{each.path}")
    for each in pythons.with_gil()
    if each.version >= (3, 14)
] or [_NONE]


def of_program(row: Row) -> list[str]:
    """The names of the program's own frames and of marks, the outermost first."""
    return [
        frame.name
        for frame in reversed(row.user or ())
        if frame.kind == "python"
        and (frame.name[0] == "[" or frame.module.endswith("/program.py"))
        and frame.name not in {"<module>", "<lambda>"}
    ]


@pytest.mark.parametrize("python", NEWEST)
def test_every_sample_has_the_tasks_that_await_its_own(
    python: pythons.Python, tmp_path: Path
) -> None:
    with started(python.path, AWAITING, tmp_path) as process:
        options = ProfileOptions(
            pids=(process.pid,),
            frequency=pythons.FREQUENCY,
            kernel_stacks=False,
            duration_s=3,
            async_tasks=True,
        )
        with Profiler(options) as profiler:
            profiler.wait()
            profile = profiler.stop()
        chains = chains_of(process)
    assert len(chains) >= 30
    total = 0
    seen: set[str] = set()
    wrong: Counter[str] = Counter()
    for row in profile.rows():
        names = of_program(row)
        if names[-2:] != ["spin", "marked"]:
            continue
        total += row.weight
        stack = ";".join(names)
        seen.add(stack)
        if stack not in chains:
            wrong[stack] += row.weight
    assert total >= 100
    assert wrong.total() <= total // 1000, wrong
    assert len(seen & chains) > len(chains) // 2, (seen, chains)


DEEP = """
import asyncio, time

def marked():
    until = time.thread_time() + 0.002
    while time.thread_time() < until:
        pass

async def deep(depth):
    if depth:
        await asyncio.create_task(deep(depth - 1))
    else:
        while True:
            marked()
            await asyncio.sleep(0)

async def awaits(task):
    await task

async def main():
    await awaits(asyncio.create_task(deep(100)))

print(flush=True)
asyncio.run(main())
"""


@pytest.mark.parametrize("python", NEWEST)
def test_a_chain_that_is_too_long_ends_in_a_mark(python: pythons.Python, tmp_path: Path) -> None:
    seen: Counter[tuple[str, ...]] = Counter()
    with started(python.path, DEEP, tmp_path) as process:
        options = ProfileOptions(
            pids=(process.pid,), frequency=pythons.FREQUENCY, kernel_stacks=False, async_tasks=True
        )
        with Profiler(options) as profiler:
            profiler.wait(at_most_s=1)
            profile = profiler.stop()
    for row in profile.rows():
        names = of_program(row)
        if names[-1:] == ["marked"]:
            seen[tuple(names)] += row.weight
    (names,) = seen
    assert names[0] == "[more awaiters]"
    tasks = names[1:-2]
    assert len(tasks) > 60
    assert set(tasks[::2]) == {"deep"}
    assert set(tasks[1::2]) == {"[task]"}


LINES = """
import asyncio, time

def marked():
    until = time.thread_time() + 0.002
    while time.thread_time() < until:
        pass  # 7

async def runs():
    marked()  # 10

async def inner():
    task = asyncio.create_task(runs())
    await task  # 14

async def outer():
    for _ in range(1):
        x = (1,
             await inner(),  # 19
             2)

async def main():
    while True:
        await asyncio.create_task(outer())  # 24

print(flush=True)
asyncio.run(main())
"""


@pytest.mark.parametrize("python", NEWEST)
def test_suspended_coroutines_have_their_lines(python: pythons.Python, tmp_path: Path) -> None:
    with started(python.path, LINES, tmp_path) as process:
        options = ProfileOptions(
            pids=(process.pid,),
            frequency=pythons.FREQUENCY,
            kernel_stacks=False,
            async_tasks=True,
            python_lines=True,
        )
        with Profiler(options) as profiler:
            profiler.wait(at_most_s=1)
            profile = profiler.stop()
    stacks: Counter[tuple[tuple[str, int], ...]] = Counter()
    for row in profile.rows():
        frames = [frame for frame in row.user or () if isinstance(frame, Frame)]
        names = [(each.name, each.line) for each in frames if each.module.endswith("/program.py")]
        if names[0][0] == "marked":
            stacks[tuple(names[1:])] += row.weight
    (stack,) = stacks
    assert stack == (
        *(("runs", 10), ("inner", 14), ("outer", 19)),
        *(("main", 24), ("<module>", 27)),
    )


LATE = """
import sys, time

def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass

print(flush=True)
sys.stdin.readline()
burn(0.05)
import asyncio
print(flush=True)

async def inner():
    burn(0.002)

async def main():
    while True:
        await asyncio.create_task(inner())

asyncio.run(main())
"""


@pytest.mark.parametrize("python", NEWEST)
def test_a_program_that_imports_asyncio_later_has_its_tasks(
    python: pythons.Python, tmp_path: Path
) -> None:
    stacks: Counter[str] = Counter()
    with started(python.path, LATE, tmp_path) as process:
        options = ProfileOptions(
            pids=(process.pid,), frequency=pythons.FREQUENCY, kernel_stacks=False, async_tasks=True
        )
        with Profiler(options) as profiler:
            profiler.wait(at_most_s=0.1)
            assert process.stdin
            assert process.stdout
            process.stdin.write("\n")
            process.stdin.flush()
            profiler.wait(process.stdout, at_most_s=60)  # imported
            profiler.wait(at_most_s=3)
            profile = profiler.stop()
    for row in profile.rows():
        stacks[";".join(of_program(row))] += row.weight
    whole, without = stacks["main;[task];inner;burn"], stacks["inner;burn"]
    assert whole > 10, stacks
    assert without <= whole // 10, stacks


SLEEPS = """
import asyncio, sys, time

async def sleeps():
    time.sleep(0.01)

async def main():
    while True:
        async with asyncio.TaskGroup() as group:
            group.create_task(sleeps())

print(flush=True)
sys.stdin.readline()
asyncio.run(main())
"""

SESSIONS: dict[str, Callable[[int], OffCpu | Wall]] = {
    "offcpu": lambda pid: OffCpu(offcpu.OffCpuOptions(pids=(pid,), async_tasks=True)),
    "wall": lambda pid: Wall(wall.WallOptions(pids=(pid,), async_tasks=True)),
}


@pytest.mark.parametrize("command", SESSIONS)
@pytest.mark.parametrize("python", NEWEST)
def test_waits_have_the_tasks_that_await_the_one_that_waits(
    python: pythons.Python, command: str, tmp_path: Path
) -> None:
    with (
        started(python.path, SLEEPS, tmp_path) as process,
        SESSIONS[command](process.pid) as session,
    ):
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
        session.wait(at_most_s=1)
        result = session.stop()
    profile = result.profile if isinstance(result, WallResult) else result
    stacks: Counter[str] = Counter()
    for row in profile.rows():
        names = of_program(row)
        if "sleeps" in names:
            stacks[";".join(names)] += row.weight
    assert stacks.keys() == {"main;[task];sleeps"}
    assert stacks.total() > 100_000_000


_SUFFIX = re.compile(r"_\[(on|off|rq|gil)\](?=;| )")
"""What a thread does, in the frames of `wall`."""


@pytest.mark.parametrize("command", by_day(["profile", "wall"], ["wall"]))
def test_an_interpreter_that_does_not_keep_it_says_so(command: str, tmp_path: Path) -> None:
    program = """
import asyncio
async def spin():
    while True:
        pass
async def main():
    await asyncio.create_task(spin())
print(flush=True)
asyncio.run(main())
"""
    assert sys.version_info < (3, 14)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    with started(sys.executable, program, tmp_path) as process:
        options = ("-f", "-U", "-p", str(process.pid), "1")
        result = run(command, "--async", *options)
        plain = run(command, *options)
    assert f"CPython {version} does not keep what awaits the task that runs" in " ".join(
        result.stderr.split()
    )
    assert "--async" not in plain.stderr
    found, as_ever = (
        {stack for stack in folded(_SUFFIX.sub("", each.stdout)) if ";spin" in stack}
        for each in (result, plain)
    )
    assert found & as_ever
    assert not [stack for stack in found if ";main" in stack or "[task]" in stack]
