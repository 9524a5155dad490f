"""Python frames of threads of which the kernel moves memory: truly named, or without a name.

The program takes the rights of pages away while it sleeps, so that BPF cannot read them, as it is
for a moment when the kernel makes a huge page of them (as in the last test). It does so in C, and
nothing else of it runs.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.results import Profile
from purebpf.symbols.frame import Reason, Unknown
from purebpf.tools.offcpu import OffCpu, OffCpuOptions
from tests.support.host.faults import slow_host
from tests.support.programs import pythons
from tests.support.programs.python_programs import running
from tests.support.programs.walking import build

pytestmark = pytest.mark.needs(
    "bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "atomic_fetch", "gcc", "x86_64"
)
EVERY = [pytest.param(each, id=f"{each.version[1]}-{each.path}") for each in pythons.with_gil()]
FEW = [*EVERY[:1], *EVERY[-1:]]
NUMBERED = (3, 12)
"""The version from which on code objects have numbers."""
NEWEST = max((each for each in pythons.with_gil() if each.version >= NUMBERED), default=None)

HIDE = """
#include <sys/mman.h>
#include <time.h>

long hide(void *at, unsigned long size)
{
	struct timespec wait = {0, 4000000};

	mprotect(at, size, PROT_NONE);
	nanosleep(&wait, 0);
	mprotect(at, size, PROT_READ | PROT_WRITE);
	return 0;
}
"""

PROGRAM = """
import ctypes, sys, threading
lib = ctypes.CDLL(sys.argv[1])
lib.hide.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
kept = []

def pages(at, size=256):
    first = at & -4096
    return first, (at + size + 4095 & -4096) - first

def leaf(at, size):
    lib.hide(at, size)

def make(name):
    made = {"lib": lib}
    exec(compile(f"def {name}(at, size):\\n    lib.hide(at, size)", "<made>", "exec"), made)
    return made.pop(name)  # no cycle: it goes when its last name does

def met():
    leaf(0, 0)

def hidden():
    leaf(*pages(id(leaf.__code__)))

def fresh():
    function = make("fresh_0")
    function(*pages(id(function.__code__)))

def replaced():
    function = make("older_0")
    function(0, 0)
    address = id(function.__code__)
    function(*pages(address))
    del function
    for _ in range(1000):
        kept.append(make("newer_0"))
        if id(kept[-1].__code__) == address:
            return "same"
    return "other"

def taken_over():
    if replaced() == "same":
        kept[-1](*pages(id(kept[-1].__code__)))
        return "same"
    return "other"

def deep(depth):
    if depth:
        return deep(depth - 1)
    frame = sys._getframe(70)
    # the frame itself (PyFrameObject), or what it points to (3.11)
    at = id(frame)
    if sys.version_info >= (3, 11):
        at = ctypes.c_void_p.from_address(at + 24).value
    lib.hide(*pages(at, 1))

def cut():
    deep(200)

def without_state():
    current = ctypes.pythonapi.PyThreadState_Get
    current.restype = ctypes.c_void_p
    def run():
        lib.hide(*pages(current()))
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

print(flush=True)
for line in sys.stdin:
    print(globals()[line.strip()]() or "done", flush=True)
"""


class Steps:
    """A program that takes steps: see above."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.pid = process.pid
        self._process = process

    def take(self, step: str) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{step}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hide")
    (folder / "program.py").write_text(PROGRAM)
    return build(folder, HIDE, "-shared", "-fPIC", name="hide.so")


@contextmanager
def started(python: str, library: Path) -> Iterator[Steps]:
    words = [python, str(library.parent / "program.py"), str(library)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout
            process.stdout.readline()
            yield Steps(process)
        finally:
            process.kill()


def traced(python: str, library: Path, *steps: str) -> tuple[Profile, list[str]]:
    """What the program waits for, and what its steps say; names are read when all are taken."""
    with started(python, library) as program, OffCpu(OffCpuOptions(pids=(program.pid,))) as waiting:
        waiting.wait(at_most_s=0.2)
        answers = [program.take(step) for step in steps]
        return waiting.stop(), answers


def chains(profile: Profile) -> list[tuple[str, ...]]:
    """The Python frames of the waits in `hide`, innermost first."""
    found = []
    for row in profile.rows():
        if any(getattr(frame, "name", "") == "hide" for frame in row.user):
            python = [frame for frame in row.user if frame.kind == "python"]
            found.append(
                tuple(
                    frame.reason.name if isinstance(frame, Unknown) else frame.name
                    for frame in python
                )
            )
    return found


def lost(profile: Profile) -> dict[str, int]:
    return {cause.name: cause.lost for cause in profile.loss.causes}


UNNAMED, CUT = Reason.PYTHON_UNNAMED.name, Reason.PYTHON_CUT.name


@pytest.mark.parametrize("python", pythons.params(pythons.with_gil()))
def test_a_function_that_was_met_before_keeps_its_name(
    python: pythons.Python, library: Path
) -> None:
    steps = ("met", "hidden", "hidden", "met", "hidden")
    profile, _ = traced(python.path, library, *steps)
    found = chains(profile)
    if python.version >= NUMBERED and not python.path.endswith("t"):
        assert set(found) == {("leaf", "met", "<module>"), ("leaf", "hidden", "<module>")}
        assert lost(profile)["python_unnamed"] == 0
    else:  # nothing proves it
        assert ("leaf", "met", "<module>") in found
        assert any(chain[0] == UNNAMED for chain in found)
        assert lost(profile)["python_unnamed"] >= 3
    for chain in found:
        assert len(chain) == 3
        assert {chain[0], chain[2]} <= {"leaf", "<module>", UNNAMED}
        assert chain[1] in {"met", "hidden", UNNAMED}


@pytest.mark.parametrize("python", pythons.params(pythons.with_gil()))
def test_memory_of_another_function_gives_no_name(python: pythons.Python, library: Path) -> None:
    """Its code object is gone when it can be read, and in its place is one that came later."""
    profile, (answer,) = traced(python.path, library, "replaced")
    assert answer == "same"
    found = chains(profile)
    assert len(found) == 2  # met, and hidden
    assert {chain[0] for chain in found} == {"older_0", UNNAMED}
    assert lost(profile)["python_unnamed"] >= 1


@pytest.mark.parametrize("python", FEW)
def test_a_function_in_the_memory_of_another_one_does_not_get_its_name(
    python: pythons.Python, library: Path
) -> None:
    profile, (answer,) = traced(python.path, library, "taken_over")
    assert answer == "same"
    innermost = {chain[0] for chain in chains(profile) if chain[1] == "taken_over"}
    assert innermost
    assert innermost <= {"newer_0", UNNAMED}


def test_a_function_that_was_not_met_before_has_its_own_name_or_none(library: Path) -> None:
    profile, _ = traced(sys.executable, library, "fresh")
    (chain,) = chains(profile)
    assert chain[0] in {"fresh_0", UNNAMED}


@pytest.mark.parametrize("python", FEW)
def test_frames_that_cannot_be_read_are_cut_with_a_reason(
    python: pythons.Python, library: Path
) -> None:
    profile, _ = traced(python.path, library, "cut")
    (chain,) = chains(profile)
    assert set(chain[:-1]) <= {"deep"}
    assert chain[-1] == CUT
    if python.version >= (3, 11):  # frames lie side by side
        assert 20 < len(chain) <= 71
    assert lost(profile)["python_cut"] == 1


@pytest.mark.parametrize("python", FEW)
def test_a_thread_without_a_readable_state_has_a_mark(
    python: pythons.Python, library: Path
) -> None:
    profile, _ = traced(python.path, library, "without_state")
    assert chains(profile) == [(CUT,)]
    assert lost(profile)["python_cut"] == 1


COLLAPSES = """
import ctypes, threading, time
HUGE, COLLAPSE = 1 << 21, 25
libc = ctypes.CDLL(None, use_errno=True)
for function in libc.madvise, libc.mprotect:
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
TEXT = '''
def outer(numbers):
    return inner(numbers)
def inner(numbers):
    return sleeps(numbers)
def sleeps(numbers):
    total = sum(numbers)
    time.sleep(0.0005)
    return total
'''
made = []
for _ in range(6000):  # whole huge pages of them, of which one in the middle is taken
    made.append({"time": time})
    exec(compile(TEXT, "<made>", "exec"), made[-1])
outer, inner, sleeps = (made[3000][name] for name in ("outer", "inner", "sleeps"))

def work():
    while True:
        outer([0] * 300)

def collapses(at):
    libc.mprotect(at, 4096, 7)  # takes a huge page apart
    libc.mprotect(at, 4096, 3)
    return not libc.madvise(at, HUGE, COLLAPSE)

places = sorted({id(function.__code__) & -HUGE for function in (outer, inner, sleeps)})
print(*[int(collapses(at)) for at in places], flush=True)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
while True:
    for at in places:
        collapses(at)
    time.sleep(0.002)
"""


@pytest.mark.skipif(NEWEST is None, reason="needs CPython 3.12")
def test_functions_in_huge_pages_keep_their_names(tmp_path: Path) -> None:
    assert NEWEST is not None
    with running(NEWEST.path, COLLAPSES, tmp_path) as (pid, collapsed):
        if "1" not in collapsed:
            pytest.skip("MADV_COLLAPSE (Linux 6.1) makes no huge page of this heap")
        for _ in range(5):  # until the moment was met
            with OffCpu(OffCpuOptions(pids=(pid,))) as waiting:
                waiting.wait(at_most_s=2)
                profile = waiting.stop()
            assert profile.about["python_stacks"]
            assert lost(profile)["python_unnamed"] == 0
            if profile.about["python_deferred"]:
                break
        else:
            assert slow_host()
