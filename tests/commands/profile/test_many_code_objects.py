"""Programs that compile code and throw it away keep their names, however long they run."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from purebpf import Frame
from purebpf.cli.loss import words_of_profile
from purebpf.observe.instruments.call_graph import load_walking
from purebpf.results import Profile
from purebpf.spec import ObjectSpec
from purebpf.tools.profile import ProfileOptions, Profiler, sampling
from tests.commands.profile.test_python_frames import started
from tests.support.programs import pythons

pytestmark = pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "x86_64")
_PLACES, _CALLS = 256, 60

CHAINS = f"""
import itertools, sys, time, types

numbers = itertools.count()
code = (lambda rest: rest.pop()(rest)).__code__
name = "co_qualname" if sys.version_info >= (3, 11) else "co_name"

def marked(rest):
    until = time.thread_time() + 0.002
    while time.thread_time() < until:
        pass

print(flush=True)
while True:
    codes = [code.replace(**{{name: f"made_{{next(numbers)}}"}}) for _ in range({_CALLS})]
    rest = [marked, *(types.FunctionType(made, {{}}) for made in reversed(codes))]
    rest.pop()(rest)
"""
"""Each code object may be where another one was, and its name where that one's was; before 3.11 the
name is the only one, later the qualified name is the only one that differs."""

LINES = """
import itertools, time

def marked():
    until = time.thread_time() + 0.002
    while time.thread_time() < until:
        pass

print(flush=True)
for number in itertools.count():
    made = {"marked": marked}
    blank = "\\n" * (number % 61)
    exec(compile(f"def made_{number}():\\n{blank} marked()", "<made>", "exec"), made)
    made[f"made_{number}"]()
    made.clear()  # the function and its globals hold each other
"""
"""Tables of lines of one length; each is soon where another one was."""

SAME = """
import time
text = "def same():\\n  end = time.thread_time() + 0.001\\n  while time.thread_time() < end: pass"
print(flush=True)
kept = []
while True:
    made = {"time": time}
    exec(compile(text, "<made>", "exec"), made)
    kept.append(made["same"])
    made["same"]()
"""


def half_seconds(profiler: Profiler, *, reading: bool = True) -> Iterator[Profile]:
    """What was sampled in each of 60; else than `reading`, no ring is read before its end."""
    for _ in range(60):
        if reading:
            profiler.wait(at_most_s=0.5)
        else:
            time.sleep(0.5)
        profiler.take()
        yield profiler.last()


@pytest.fixture
def few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The maps of code objects have places for those of a few stacks."""

    def load(spec: ObjectSpec, *arguments: Any, **keywords: Any) -> Any:
        maps = [name for name in ("python_codes", "python_functions") if name in spec.maps]
        return load_walking(spec.resize(**dict.fromkeys(maps, _PLACES)), *arguments, **keywords)

    monkeypatch.setattr(sampling, "load_walking", load)


@pytest.mark.usefixtures("few_places")
@pytest.mark.parametrize("python", pythons.params())
def test_names_are_right_however_many_code_objects_there_were(
    python: pythons.Python, tmp_path: Path
) -> None:
    chains: Counter[str] = Counter()
    with (
        started(python.path, CHAINS, tmp_path) as process,
        Profiler(
            ProfileOptions(pids=(process.pid,), frequency=199, kernel_stacks=False)
        ) as profiler,
    ):
        for profile in half_seconds(profiler):
            for row in profile.rows():
                frames = [frame for frame in row.user if frame.kind == "python"]
                names = [getattr(frame, "name", "") for frame in frames]
                if names[:1] == ["marked"]:
                    chains[_judge(names[1:-1])] += row.weight
            if chains["right"] * _CALLS > 10 * _PLACES:
                break
        about = profiler.stop().about
    assert chains["right"] * _CALLS > 10 * _PLACES
    assert not chains["wrong"], chains
    # a reader that gets no CPU for half a second loses names, and says so
    assert about["python_unnamed"] == about["python_names_lost"]
    assert bool(chains["unnamed"]) <= bool(about["python_names_lost"]), chains


def test_names_that_found_no_room_are_counted_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(spec: ObjectSpec, *arguments: Any, **keywords: Any) -> Any:
        rings = [name for name in ("python_names",) if name in spec.maps]
        return load_walking(spec.resize(**dict.fromkeys(rings, 4096)), *arguments, **keywords)

    monkeypatch.setattr(sampling, "load_walking", load)
    options = ProfileOptions(frequency=199, kernel_stacks=False)
    with (
        started(sys.executable, CHAINS, tmp_path) as process,
        Profiler(options._replace(pids=(process.pid,))) as profiler,
    ):
        for profile in half_seconds(profiler, reading=False):
            if profile.about["python_unnamed"]:
                break
        profile = profiler.stop()
    unnamed = profile.about["python_unnamed"]
    assert unnamed
    causes = {cause.name: cause for cause in profile.loss.causes}
    assert causes["python_unnamed"].lost == unnamed
    said = "\n".join(words_of_profile(profile))
    assert f"lost: {unnamed} Python frames have no name: the names of {unnamed} found" in said
    assert "a Python function: its name found no room" in said


def _judge(names: list[str]) -> str:
    """Of the names of a stack, innermost first: each call has the number below its callee's."""
    if not all(names):
        return "unnamed"
    last = int(names[0].rpartition("_")[2])
    return "right" if names == [f"made_{last - at}" for at in range(_CALLS)] else "wrong"


@pytest.mark.parametrize("python", pythons.params())
def test_lines_of_code_that_was_thrown_away_are_its_own(
    python: pythons.Python, tmp_path: Path
) -> None:
    """However late the tables of lines are read."""
    lines: Counter[str] = Counter()
    options = ProfileOptions(frequency=999, kernel_stacks=False, python_lines=True)
    with (
        started(python.path, LINES, tmp_path) as process,
        Profiler(options._replace(pids=(process.pid,))) as profiler,
    ):
        for profile in half_seconds(profiler, reading=False):
            for row in profile.rows():
                frames = [frame for frame in row.user if isinstance(frame, Frame)]
                for callee, frame in pairwise(frames):
                    if callee.name == "marked" and frame.name.startswith("made_"):
                        right = 2 + int(frame.name.partition("_")[2]) % 61
                        how = "right" if frame.line == right else "wrong" if frame.line else "none"
                        lines[how] += row.weight
            if lines.total() > 60:
                break
    assert lines["right"] > 60, lines
    assert lines.keys() == {"right"}, lines


def test_code_objects_of_one_function_share_a_number(tmp_path: Path) -> None:
    """Else each has a stack of its own, and the map of stacks has room for 16,384."""
    samples = 0
    with (
        started(sys.executable, SAME, tmp_path) as process,
        Profiler(
            ProfileOptions(pids=(process.pid,), frequency=499, kernel_stacks=False)
        ) as profiler,
    ):
        for profile in half_seconds(profiler):
            for row in profile.rows():
                samples += row.weight * any(
                    getattr(frame, "name", "") == "same" for frame in row.user
                )
            if samples > 100:
                break
        numbers = profiler._sampling.loaded.globals["python_number"]  # noqa: SLF001
    assert samples > 100
    assert 0 < numbers < 10
