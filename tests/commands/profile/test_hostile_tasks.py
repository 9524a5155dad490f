"""`--async` of programs that spoil their own tasks: stacks end in marks, names are escaped."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.observe.runtimes.cpython.asyncio_file import find_task_layout
from purebpf.observe.runtimes.cpython.python_process import find_python
from purebpf.results import Profile
from purebpf.tools.profile import ProfileOptions, Profiler
from tests.commands.profile.test_python_frames import started
from tests.commands.profile.test_python_tasks import NEWEST, of_program
from tests.support.environment import run
from tests.support.programs import pythons

pytestmark = pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "x86_64")

AWAITED = """
import asyncio, ctypes, json, sys, time

def word(address):
    return ctypes.c_uint64.from_address(address)

def flag(address):
    return ctypes.c_uint8.from_address(address)

def marked():
    until = time.thread_time() + 0.002
    while time.thread_time() < until:
        pass

async def spins():
    await asyncio.sleep(0)  # until the others wait
    print(flush=True)
    at = json.loads(sys.stdin.readline())
    cases = json.loads(sys.stdin.readline())
    for number, spoil in enumerate(cases * 2):  # twice: user space may be late for the first
        name = f"case_{number % len(cases)}"
        text = f"def {name}(): [marked() for _ in range(40)]"
        exec(compile(text, __file__, "exec"), globals())
        spoil_one(at, spoil, globals()[name])
    print(flush=True)
    sys.stdin.readline()

async def awaits(awaitable):
    await awaitable

async def main():
    global inner, outer, coroutine, outermost
    outermost = asyncio.current_task()
    inner = asyncio.create_task(spins())
    coroutine = awaits(inner)
    outer = asyncio.create_task(coroutine)
    await outer

def spoil_one(at, spoil, run):
    top = word(id(coroutine) + at["coroutine_frame"] + at["frame_top"])
    objects = [word(top.value - 8 * i) for i in (1, 2)]  # 3.15 has another one above what it awaits
    its_coroutine = word(id(outer) + at["task_coroutine"])
    fake = ctypes.create_string_buffer(1024)
    # a set: type, hash and so on, then how many elements, the mask of its table, and that
    number, mask, table = (word(ctypes.addressof(fake) + place) for place in (24, 32, 40))
    at_inner, at_outer, at_outermost = (
        word(id(task) + at["awaited_by"]) for task in (inner, outer, outermost)
    )
    is_set = flag(id(inner) + at["awaited_by_is_set"])
    changed = (top, *objects, its_coroutine, at_inner, at_outer, at_outermost, is_set)
    before = [each.value for each in changed]
    exec(spoil)
    run()
    for each, value in zip(changed, before):
        each.value = value

asyncio.run(main())
"""

WHOLE = ["main", "[task]", "awaits", "[task]", "spins", "marked"]
UNKNOWN = ["[unknown awaiter]", "spins", "marked"]
A_SET = "is_set.value, at_inner.value = 1, ctypes.addressof(fake)"
SPOILED: dict[str, tuple[str, list[str]]] = {
    "nothing": ("", WHOLE),
    "a task that awaits itself": (
        "at_outer.value = id(outer)",
        ["[more awaiters]", "awaits", *["[task]", "awaits"] * 45, "[task]", "spins", "marked"],
    ),
    "tasks that await each other": (
        "at_outermost.value = id(outer)",
        ["[more awaiters]", *["awaits", "[task]", "main", "[task]"] * 45],
    ),
    "a running task that awaits itself": ("at_inner.value = id(inner)", ["spins", "marked"]),
    "a coroutine that awaits itself": (
        "for each in objects: each.value = id(coroutine)",
        ["[more awaiters]", *["awaits"] * 200],
    ),
    "an awaiter that is nowhere": ("at_inner.value = 1 << 62", UNKNOWN),
    "an awaiter in the kernel": ("at_inner.value = 0xffff888000000000", UNKNOWN),
    "an awaiter whose coroutine is nowhere": (
        "its_coroutine.value = 1 << 62",
        ["[unknown awaiter]", "[task]", "spins", "marked"],
    ),
    "a coroutine that awaits what is nowhere": (
        "for each in objects: each.value = 1 << 62",
        ["[unknown awaiter]", "awaits", "[task]", "spins", "marked"],
    ),
    "a coroutine with its stack nowhere": (
        "top.value = 1 << 62",
        ["[unknown awaiter]", "awaits", "[task]", "spins", "marked"],
    ),
    "a coroutine with its stack below its frame": (
        "top.value = 8",
        ["[unknown awaiter]", "awaits", "[task]", "spins", "marked"],
    ),
    "a set of 2^62 awaiters": (
        f"{A_SET}; number.value = 1 << 62; mask.value = (1 << 62) - 1",
        ["[several awaiters]", "spins", "marked"],
    ),
    "a set of one awaiter in a table of 2^40": (
        f"{A_SET}; number.value = 1; mask.value = (1 << 40) - 1; table.value = id(inner)",
        UNKNOWN,
    ),
    "a set with its table nowhere": (
        f"{A_SET}; number.value = 1; mask.value = 7; table.value = 1 << 62",
        UNKNOWN,
    ),
    "a set of one awaiter, without it": (
        f"{A_SET}; number.value = 1; mask.value = 7; table.value = ctypes.addressof(fake) + 64",
        UNKNOWN,
    ),
}


@contextmanager
def informed(
    python: pythons.Python, program: str, path: Path, *more: object
) -> Iterator[subprocess.Popen[str]]:
    """A program that knows where its tasks are, and more."""
    with started(python.path, program, path) as process:
        assert process.stdin
        found = find_python(process.pid)
        assert found is not None
        with found:
            tasks = find_task_layout(process.pid, found)
        assert tasks is not None
        at = {"string_length": found.layout.string_length, **tasks._asdict()}
        for what in (at, *more):
            process.stdin.write(json.dumps(what) + "\n")
        process.stdin.flush()
        yield process


def marked(profile: Profile) -> Counter[tuple[str, ...]]:
    """Samples in the marked function by stack."""
    stacks: Counter[tuple[str, ...]] = Counter()
    for row in profile.rows():
        names = of_program(row)
        if names[-1:] == ["marked"]:
            stacks[tuple(names)] += row.weight
    return stacks


@pytest.mark.parametrize("python", NEWEST)
def test_spoiled_tasks_end_in_a_mark(python: pythons.Python, tmp_path: Path) -> None:
    cases = [spoil for spoil, _ in SPOILED.values()]
    with informed(python, AWAITED, tmp_path, cases) as process:
        options = ProfileOptions(
            pids=(process.pid,), frequency=499, kernel_stacks=False, async_tasks=True
        )
        with Profiler(options) as profiler:
            assert process.stdout
            profiler.wait(process.stdout, at_most_s=100)
            assert process.stdout.readline() == "\n"
            profile = profiler.stop()
    seen: dict[str, list[tuple[str, ...]]] = {}
    for names in marked(profile):
        assert names[-3] == "spoil_one"
        seen.setdefault(names[-2], []).append((*names[:-3], names[-1]))
    for number, (case, (_, expected)) in enumerate(SPOILED.items()):
        (names,) = seen[f"case_{number}"]
        if expected[0] == "[more awaiters]":  # as long as there is room
            assert names[0] == expected[0], case
            assert len(names) > 80, case
            assert set(names[1:]) <= {*expected, *WHOLE}, case
        else:
            assert list(names) == expected, case
    lost = {cause.name: cause.lost for cause in profile.loss.causes}
    unknown = [case for case, (_, names) in SPOILED.items() if names[0] == "[unknown awaiter]"]
    assert lost["python_cut"] >= len(unknown)


SHARED = """
import asyncio, time

def marked():
    until = time.thread_time() + 0.002
    while time.thread_time() < until:
        pass

async def shared():
    await asyncio.sleep(0.1)
    print(flush=True)
    while True:
        marked()

async def awaits(task):
    await asyncio.shield(task)

async def main():
    task = asyncio.create_task(shared())
    awaiters = [asyncio.create_task(awaits(task)) for _ in range(AWAITERS)]
    await asyncio.sleep(0)
    for each in awaiters[1:]:
        each.cancel()
    await asyncio.wait(awaiters[1:])
    await awaiters[0]

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("awaiters", "expected"),
    [(4, ["main", "[task]", "awaits", "[task]"]), (6, ["[unknown awaiter]"])],
)
@pytest.mark.parametrize("python", NEWEST)
def test_a_set_that_has_grown_is_not_read(
    python: pythons.Python, awaiters: int, expected: list[str], tmp_path: Path
) -> None:
    """What awaits a task is in a set from the second on, which grows with the fifth."""
    program = SHARED.replace("AWAITERS", str(awaiters))
    with started(python.path, program, tmp_path) as process:
        options = ProfileOptions(
            pids=(process.pid,), frequency=499, kernel_stacks=False, async_tasks=True
        )
        with Profiler(options) as profiler:
            profiler.wait(at_most_s=0.5)
            stacks = marked(profiler.stop())
    assert stacks.keys() == {(*expected, "shared", "marked")}


EVIL = "\x1b[2J<script>\n;evil"
NAMES = f"""
import asyncio, ctypes, json, sys

def word(address):
    return ctypes.c_uint64.from_address(address)

async def spins():
    await asyncio.sleep(0)
    print(flush=True)
    at = json.loads(sys.stdin.readline())
    word(id(tasks[3].get_name()) + at["string_length"]).value = 1 << 62
    word(id(tasks[4]) + at["task_name"]).value = 1 << 62
    word(id(long.__code__.co_qualname) + at["string_length"]).value = 1 << 62
    while True:
        pass

async def evil(awaitable):
    await awaitable

async def long(awaitable):
    await awaitable

evil.__code__ = evil.__code__.replace(co_qualname={EVIL!r})

async def main():
    global tasks
    tasks = [asyncio.create_task(spins())]
    for name in ({EVIL!r}, "n" * 10**6, "of 2^62 " + "characters", "nowhere"):
        tasks.append(asyncio.create_task(evil(long(tasks[-1])), name=name))
    await tasks[-1]

asyncio.run(main())
"""


@pytest.mark.parametrize("python", NEWEST)
def test_spoiled_names_do_no_harm(python: pythons.Python, tmp_path: Path) -> None:
    with informed(python, NAMES, tmp_path) as process:
        pid = str(process.pid)
        profiled = ("profile", "--async", "-U", "-F", "199", "-p", pid, "1", "--format")
        for command in ((*profiled, "folded"), (*profiled, "html"), ("dump", "--async", pid)):
            result = run(*command)
            assert process.poll() is None
            assert result.returncode == 0, result.stderr
            assert "spins" in result.stdout
            assert "Traceback" not in result.stderr
            for text in (result.stdout, result.stderr):
                assert "\x1b" not in text
                assert "<script>\n;evil" not in text
                assert "\nevil" not in text
                assert "\n;evil" not in text
                assert len(text) < 1 << 21
