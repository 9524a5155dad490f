"""Profiles have the Python functions that ran, as the program itself knows its calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import purebpf
from purebpf.results import Row
from purebpf.tools.profile import ProfileOptions, Profiler
from tests.support.environment import run
from tests.support.host.faults import slow_host
from tests.support.programs import pythons

pytestmark = pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf")
_PATIENCE_S = 30
EVERY = [pytest.param(each, id=f"{each.version[1]}-{each.path}") for each in pythons.every()]

CHAINS = """
import asyncio, ctypes, functools, json, re, sys, threading, time

chains = set()

def spin():
    frame, chain = sys._getframe(), []
    while frame:
        code = frame.f_code
        chain.append(getattr(code, "co_qualname", code.co_name))
        frame = frame.f_back
    chains.add(";".join(reversed(chain)))
    marked()

def marked():
    until = time.thread_time() + 0.002
    while time.thread_time() < until:
        for _ in range(300):
            pass

class Handler:
    def get(self, depth):
        return self.get(depth - 1) if depth else spin()

    @property
    def value(self):
        return (lambda: spin())()

    def __lt__(self, other):
        spin()

def generator(depth):
    if depth:
        yield from generator(depth - 1)
    else:
        yield spin()

async def coroutine(depth):
    if depth:
        await coroutine(depth - 1)
    else:
        spin()

def größe_名前():
    spin()

def excepts():
    try:
        raise ValueError
    except ValueError:
        spin()

class Made:
    def __init__(self, is_quick=False):
        if not is_quick:
            spin()

def makes():  # the loop calls __init__ itself, once it has seen that the class is always the same
    for _ in range(20):
        Made(True)
    Made()

def thrown_away(numbers=iter(range(10**9))):  # its code object is where another one was before
    number = next(numbers)
    text = "def inner_{0}(): spin()\\ndef outer_{0}(): inner_{0}()\\nouter_{0}()"
    exec(compile(text.format(number), "<made>", "exec"), {"spin": spin})

callback = ctypes.CFUNCTYPE(None)(lambda: spin())
kinds = [
    thrown_away,
    lambda: Handler().get(10),
    lambda: Handler().get(40),
    lambda: Handler().value,
    lambda: sorted([Handler(), Handler()]),
    lambda: sorted([1, 2], key=lambda _: spin() or 1),
    lambda: re.sub("a", lambda match: spin() or "", "a"),
    lambda: list(generator(5)),
    lambda: [x for x in generator(0)],
    lambda: asyncio.run(coroutine(5)),
    lambda: größe_名前(),
    lambda: excepts(),
    lambda: callback(),
    lambda: exec(compile("spin()", "<made>", "exec"), globals()),
    lambda: functools.reduce(lambda a, b: spin(), [1, 2]),
    lambda: makes(),
    lambda: type("Made", (), {"__init__": lambda self: spin()})(),
]

def work():
    while True:
        for kind in kinds:
            kind()

for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)
print(flush=True)
sys.stdin.readline()
print(json.dumps(sorted(chains)), flush=True)
"""


@contextmanager
def started(python: str, program: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    file = path / "program.py"
    file.write_text(program)
    pipe = subprocess.PIPE
    with subprocess.Popen([python, file], stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout
            process.stdout.readline()
            yield process
        finally:
            process.kill()


def functions(row: Row) -> set[str]:
    """The names of Python functions on the stack of a row."""
    return {frame.name for frame in row.user or () if isinstance(frame, purebpf.Frame)}


def folded(text: str) -> Counter[str]:
    """Samples by stack, without the thread's name."""
    found: Counter[str] = Counter()
    for line in text.splitlines():
        stack, _, samples = line.rpartition(" ")
        found[stack.partition(";")[2]] += int(samples)
    return found


def chains_of(process: subprocess.Popen[str]) -> set[str]:
    """What a program says that its chains were, once it is asked."""
    assert process.stdin
    assert process.stdout
    process.stdin.write("\n")
    process.stdin.flush()
    return set(json.loads(process.stdout.readline()))


@pytest.mark.parametrize("python", pythons.params())
def test_every_sample_has_the_chain_of_its_thread(python: pythons.Python, tmp_path: Path) -> None:
    with started(python.path, CHAINS, tmp_path) as process:
        options = ProfileOptions(
            pids=(process.pid,), frequency=pythons.FREQUENCY, kernel_stacks=False, duration_s=3
        )
        with Profiler(options) as profiler:
            profiler.wait()
            profile = profiler.stop()
        chains = {f"{chain};marked" for chain in chains_of(process)}
    assert len(chains) >= 12  # some kinds have the same names
    total = unnamed = 0
    wrong: Counter[str] = Counter()
    for row in profile.rows():
        frames = [frame for frame in row.user if frame.kind == "python"]  # leaf first
        names = [getattr(frame, "name", "") for frame in frames]
        if not all(names):
            unnamed += row.weight
        elif names[:2] == ["marked", "spin"]:
            total += row.weight
            stack = ";".join(reversed(names))
            if stack not in chains:
                wrong[stack] += row.weight
    assert total >= 30
    assert wrong.total() <= total // 1000, wrong
    causes = {cause.name: cause.lost for cause in profile.loss.causes}
    assert unnamed <= min(causes["python_unnamed"] + causes["python_cut"], total // 20)


DEEP = """
import sys, time
sys.setrecursionlimit(3000)

def marked():
    until = time.thread_time() + 0.002
    while time.thread_time() < until:
        pass

def recurse(depth):
    return recurse(depth - 1) if depth else marked()

def turns(depth):  # not through C: two functions of which one calls the other
    return returns(depth - 2) if depth else marked()

def returns(depth):
    return turns(depth)

print(flush=True)
while True:
    for depth in 10, 100, 1000:
        recurse(depth)
        turns(depth)
"""


@pytest.mark.parametrize("python", [*EVERY[:1], *EVERY[-1:]])
def test_recursion_has_its_innermost_frames(python: pythons.Python, tmp_path: Path) -> None:
    seen: Counter[tuple[str, ...]] = Counter()
    end = time.monotonic() + _PATIENCE_S
    with started(python.path, DEEP, tmp_path) as process:
        options = ProfileOptions(
            pids=(process.pid,), frequency=pythons.FREQUENCY, kernel_stacks=False, duration_s=1
        )
        while len(seen) < 4 and time.monotonic() < end:  # other work may leave it little CPU time
            with Profiler(options) as profiler:
                profiler.wait()
                profile = profiler.stop()
            for row in profile.rows():
                names = tuple(frame.name for frame in row.user if frame.kind == "python")
                if names[:1] == ("marked",):
                    seen[names] += row.weight
                    assert len(names) < 96 or row.marks.end.cut, row  # native callers of each
    there_and_back = ("turns", *("returns", "turns") * 500)
    deepest = [
        ("marked", *("recurse",) * 11, "<module>"),
        ("marked", *there_and_back[:11], "<module>"),
        ("marked", *("recurse",) * 95),
        ("marked", *there_and_back[:95]),
    ]
    assert set(seen) <= set(deepest), seen
    assert len(seen) == len(deepest)


def test_native_shows_the_interpreter_and_no_python_leaves_it_alone(tmp_path: Path) -> None:
    program = "print(flush=True)\ndef spin(n):\n  while n: n = max(n - 1, 1)\nspin(5)\n"
    with started(sys.executable, program, tmp_path) as process:
        options = ("-f", "-U", "-F", "199", "-p", str(process.pid), "2")
        plain, native, without = (
            folded(run("profile", *extra, *options).stdout)
            for extra in ((), ("--native",), ("--no-python",))
        )
    assert any(stack.startswith("<module>;spin") for stack in plain)
    assert not any("PyEval" in stack for stack in plain)
    assert any("PyEval_EvalCode;<module>;spin" in stack for stack in native)
    assert not any("_PyEval_EvalFrameDefault" in stack for stack in native)
    assert any("_PyEval_EvalFrameDefault" in stack for stack in without)
    assert not any("spin" in stack for stack in without)


def test_lines_are_those_that_ran(tmp_path: Path) -> None:
    program = "print(flush=True)\ndef spin():\n  while True:\n    pass\n\nspin()\n"
    with started(sys.executable, program, tmp_path) as process:
        result = run("profile", "--lines", "--layout", "bcc", "-U", "-p", str(process.pid), "1")
    assert "<module> [program.py] program.py:6" in result.stdout
    assert " program.py:4" in result.stdout or " program.py:3" in result.stdout
    assert "py-spy" not in result.stderr
    assert "-X perf" not in result.stderr


LONG = """
import time

def spin():
    until = time.thread_time() + 0.002
    while time.thread_time() < until:
        pass

made = {"spin": spin}
for lines in 40, 400, 4000:
    body = " x = 1\\n" * lines
    exec(compile(f"def made_{lines}():\\n{body} spin()", "<made>", "exec"), made)
print(flush=True)
while True:
    for lines in 40, 400, 4000:
        made[f"made_{lines}"]()
"""


@pytest.mark.parametrize("python", [*EVERY[:1], *EVERY[-1:]])
def test_long_functions_have_their_lines(python: pythons.Python, tmp_path: Path) -> None:
    """Of their tables, some are sent with the name, and others read and checked."""
    lines: dict[str, set[int]] = {}
    options = ProfileOptions(
        frequency=pythons.FREQUENCY, kernel_stacks=False, python_lines=True, duration_s=0.5
    )
    with started(python.path, LONG, tmp_path) as process:
        end = time.monotonic() + _PATIENCE_S
        while len(lines) < 3 and time.monotonic() < end:
            with Profiler(options._replace(pids=(process.pid,))) as profiler:
                profiler.wait()
                profile = profiler.stop()
            for row in profile.rows():
                below = [frame for frame in row.user if isinstance(frame, purebpf.Frame)][:2]
                if len(below) == 2 and below[0].name == "spin":
                    lines.setdefault(below[1].name, set()).add(below[1].line)
    assert lines == {"made_40": {42}, "made_400": {402}, "made_4000": {4002}}


def test_a_command_has_its_functions(tmp_path: Path) -> None:
    file = tmp_path / "burn.py"
    file.write_text("def burn():\n  for _ in range(90_000_000): pass\nburn()\n")
    result = run("profile", "-f", "-U", "--", sys.executable, str(file))
    samples = folded(result.stdout)
    named = sum(count for stack, count in samples.items() if stack.endswith("<module>;burn"))
    assert named > sum(samples.values()) / 2


FORKS = f"""
import os, sys, time

def work():
    until = time.thread_time() + {2 if slow_host() else 0.2}
    while time.thread_time() < until:
        sum(i * i for i in range(300))

print(flush=True)
work()
sys.stdin.readline()
go, ready = os.pipe()
for _ in range(3):
    if not os.fork():
        os.close(ready)
        os.read(go, 1)
        work()
        os._exit(0)
print("forked", flush=True)
sys.stdin.readline()
os.close(ready)
for _ in range(3):
    os.wait()
print("done", flush=True)
"""


def test_children_that_are_known_before_they_work_have_their_functions(tmp_path: Path) -> None:
    with started(sys.executable, FORKS, tmp_path) as process:
        assert process.stdin
        assert process.stdout
        frequency = 49 if slow_host() else 499
        options = ProfileOptions(
            pids=(process.pid,), tree=True, frequency=frequency, kernel_stacks=False
        )
        with Profiler(options) as profiler:
            profiler.wait(at_most_s=0.5)
            for _ in range(2):
                process.stdin.write("\n")
                process.stdin.flush()
                process.stdout.readline()
                profiler.take()  # the forks are known, and what the parent has mapped
            profile = profiler.stop()
    children = [
        row
        for row in profile.rows()
        if row.labels.pid != process.pid and "_Fork" not in functions(row)  # not known yet
    ]
    total = sum(row.weight for row in children)
    # those that return from fork(2) have the frame of the module
    without = [row for row in children if not functions(row) & {"work", "<module>"}]
    assert total >= 100, (total, profile.loss)
    assert sum(row.weight for row in without) <= total // 20, without


@pytest.mark.alone  # they end before a busy machine looks
def test_processes_of_fifty_milliseconds_have_their_functions() -> None:
    """Each of them: what a shell or a server did in that process before is another program's."""
    count, work_s, frequency = (4, 3, 49) if slow_host() else (13, 0.05, 999)
    burn = f"import time\ndef burn():\n  while time.process_time() < {work_s}: pass\nburn()"
    with Profiler(ProfileOptions(frequency=frequency, kernel_stacks=False)) as profiler:
        profiler.wait(at_most_s=0.5)
        walking = profiler._sampling.walking
        assert walking is not None
        deadline = time.monotonic() + _PATIENCE_S
        while walking.is_behind and time.monotonic() < deadline:  # of what ran before
            profiler.wait(at_most_s=0.1)
        pids = []
        for _ in range(count):
            with subprocess.Popen([sys.executable, "-S", "-c", burn]) as process:
                while process.poll() is None:
                    profiler.wait(at_most_s=0.02)
            pids.append(process.pid)
            profiler.take()  # what else runs may have more stacks than the table has room for
        profile = profiler.stop()
    named: Counter[int] = Counter()
    for row in profile.rows():
        if "burn" in functions(row):
            named[row.labels.pid] += row.weight
    assert all(named[pid] for pid in pids), (pids, named, profile.hints)
    assert sum(named[pid] for pid in pids) > count * 20


def test_memories_of_processes_are_closed(tmp_path: Path) -> None:
    """Also of those that are met while the whole machine is profiled."""
    program = "print(flush=True)\nwhile True: pass\n"

    def memories() -> list[str]:
        links = (place for place in Path("/proc/self/fd").iterdir() if place.is_symlink())
        return [target for link in links if (target := os.readlink(link)).endswith("/mem")]

    with started(sys.executable, program, tmp_path):
        with Profiler(ProfileOptions(frequency=99, duration_s=1)) as profiler:
            profiler.wait()
            assert memories()
            profiler.stop()
        assert not memories()
