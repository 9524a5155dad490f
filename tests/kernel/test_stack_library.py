"""`purebpf.stacks` against programs that write down their own chain of calls."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import pytest

import purebpf
import purebpf.stacks
from purebpf.errors import LinkError
from purebpf.stacks import Stack, StackObject
from tests.support.host.faults import slow_host
from tests.support.programs.own_chains import OwnChain, c_chain, python_chain

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf", "task_pt_regs", "atomic_fetch", "perf_event", "x86_64"),
]

OBJECT = Path(__file__).parents[1] / "data/stacks_of_others.bpf.o"
EXAMPLE = Path(__file__).parents[2] / "examples/stacks/who_syncs.py"
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
EVENTS = 40
PATIENCE_S = 120.0 if slow_host() else 20.0

Attach = Callable[[StackObject, int, ExitStack], object]


def at_calls(loaded: StackObject, pid: int, links: ExitStack) -> None:
    links.enter_context(loaded.programs["on_call"].attach(f"{LIBC}:getppid", pid=pid))


def at_samples(loaded: StackObject, pid: int, links: ExitStack) -> None:
    event = links.enter_context(purebpf.PerfEvent.sampling(frequency=199, pid=pid))
    links.enter_context(loaded.programs["on_sample"].attach(event))


def where_it_says(loaded: StackObject, _pid: int, _links: ExitStack) -> None:
    loaded.attach()


KINDS: tuple[tuple[str, Attach, tuple[str, ...]], ...] = (
    ("on_call", at_calls, ()),
    ("on_sample", at_samples, ()),
    ("on_tracepoint", where_it_says, ("tracefs",)),
    ("on_raw_tracepoint", where_it_says, ()),
    ("on_typed_tracepoint", where_it_says, ()),
    ("on_switch", where_it_says, ()),
    ("on_kprobe", where_it_says, ("kprobes",)),
    ("on_function", where_it_says, ("trampolines",)),
    ("on_function_end", where_it_says, ("trampolines",)),
)

FIRST = ("on_call", "on_tracepoint", "on_kprobe", "on_function")
"""The others take their time in `make nightly`."""


@pytest.fixture(
    params=[
        pytest.param(
            (name, attach),
            id=name,
            marks=[
                *([pytest.mark.needs(*needs)] if needs else []),
                *([] if name in FIRST else [pytest.mark.nightly]),
            ],
        )
        for name, attach, needs in KINDS
    ]
)
def kind(request: pytest.FixtureRequest) -> tuple[str, Attach]:
    chosen: tuple[str, Attach] = request.param
    return chosen


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnChain]:
    with c_chain(tmp_path_factory.mktemp("chain")) as running:
        yield running


@pytest.fixture(scope="module")
def in_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnChain]:
    with python_chain(tmp_path_factory.mktemp("chain")) as running:
        yield running


def walked(
    kind: tuple[str, Attach], target: OwnChain, **options: str
) -> Iterator[tuple[Stack, Stack]]:
    """User and kernel stacks of a target; asserts that nothing was lost."""
    name, attach = kind
    spec = purebpf.read_object(OBJECT).set(target=target.pid).only(name)
    with ExitStack() as owned:
        loaded = owned.enter_context(purebpf.stacks.load(spec, pids=[target.pid], **options))
        attach(loaded, target.pid, owned)
        for event in islice(loaded.read("events", timeout=PATIENCE_S), EVENTS):
            yield event.stack, event.kernel
        losses = loaded.losses()
        if slow_host():  # stacks that came while the first tables were built; none of the above
            losses.pop("copies_lost")
        assert not any(losses.values()), losses


@pytest.mark.needs("gcc")
def test_whole_stacks_without_frame_pointers(kind, in_c):
    chain = [name for name, _, _ in in_c.chain]
    assert len(chain) == 9  # or the program wrote another one
    count = 0
    for stack, _ in walked(kind, in_c):
        frames = [frame.function for frame in stack.frames if frame.file == in_c.path]
        assert stack.end == "", stack.frames
        assert frames == [*chain, "_start"] or is_between(frames, chain), stack.frames
        assert stack.pid == in_c.pid
        count += 1
    assert count == EVENTS


def is_between(frames: list[str], chain: list[str]) -> bool:
    """Return True for a stack of a moment at which the program was on its way to its chain."""
    return frames[-1:] == ["_start"] and frames[:-1] == chain[len(chain) - len(frames) + 1 :]


@pytest.mark.nightly
@pytest.mark.needs("gcc")
def test_most_samples_are_where_the_program_spins(in_c):
    chain = [name for name, _, _ in in_c.chain]
    stacks = [
        [frame.function for frame in stack.frames if frame.file == in_c.path]
        for stack, _ in walked(("on_sample", at_samples), in_c)
    ]
    assert stacks.count([*chain, "_start"]) > EVENTS // 2


def test_python_functions_with_their_lines(kind, in_python):
    """At a moment the program is in its innermost function, or in one that this calls."""
    count = 0
    for stack, _ in walked(kind, in_python):
        frames = [
            (frame.function, frame.file, frame.line)
            for frame in stack.frames
            if frame.kind == "python"
        ]
        assert stack.end == "", stack.frames
        if frames[0][0] == "wait":
            frames = frames[1:]
        function, file, line = in_python.chain[0]
        if frames[0][2] in (0, line - 1):  # between lines; at `while`, on the way to the next turn
            frames[0] = (function, file, line)
        assert frames == in_python.chain, stack.frames
        count += 1
    assert count == EVENTS


@pytest.mark.needs("gcc", "tracefs")
def test_kernel_stacks(in_c):
    for _, kernel in walked(("on_tracepoint", where_it_says), in_c):
        assert "do_syscall_64" in [frame.function for frame in kernel.frames]
        assert {frame.kind for frame in kernel.frames} == {"kernel"}


@pytest.mark.nightly
@pytest.mark.needs("gcc", "tracefs")
def test_copies_alone_give_the_same_stacks(in_c):
    chain = [name for name, _, _ in in_c.chain]
    for stack, _ in walked(("on_tracepoint", where_it_says), in_c, call_graph="copy"):
        assert [f.function for f in stack.frames if f.file == in_c.path] == [*chain, "_start"]


@pytest.mark.needs("gcc", "tracefs")
def test_frame_pointers_never_look_whole(in_c):
    """Or they lead to the outermost function."""
    for stack, _ in walked(("on_tracepoint", where_it_says), in_c, call_graph="fp"):
        functions = [frame.function for frame in stack.frames]
        assert (stack.end == "") == (functions[-1:] == ["_start"])


@pytest.mark.needs("gcc", "tracefs")
def test_counts_by_stack(in_c):
    """The program's own map of the name `stacks`, and its variable `phase`, are its own."""
    spec = purebpf.read_object(OBJECT).set(target=in_c.pid).only("on_tracepoint")
    with purebpf.stacks.load(spec, pids=[in_c.pid]) as loaded:
        loaded.attach()
        for _ in islice(loaded.read("events", timeout=PATIENCE_S), EVENTS):
            pass
        loaded.stop()
        events = loaded.globals["phase"]  # which the program goes on counting, after its stack
        counts = dict(loaded.maps["stacks"].items())
        assert sum(counts.values()) >= events >= EVENTS
        chains = {
            tuple(frame.function for frame in loaded.stack(number).frames)
            for number in counts
            if number != 1  # a call after stop()
        }
        assert len(chains) == 1


@pytest.mark.needs("gcc")
def test_stacks_without_room_are_lost_and_counted(in_c):
    """Samples are at many addresses; there is room for one stack."""
    spec = purebpf.read_object(OBJECT).set(target=in_c.pid).only("on_sample")
    with ExitStack() as owned:
        loaded = owned.enter_context(purebpf.stacks.load(spec, pids=[in_c.pid], capacity=1))
        at_samples(loaded, in_c.pid, owned)
        # those that user space finishes, before the tables are there, need no room in the kernel
        events = loaded.read("events", timeout=PATIENCE_S)
        lost = next(event.stack for event in events if event.stack == 2)
        assert lost.frames == ()
        assert lost.end == "lost: losses() has the reason"
        assert loaded.losses()["stacks_full"] >= 1


@pytest.mark.needs("gcc", "tracefs")
def test_after_the_end_there_are_no_stacks(in_c):
    spec = purebpf.read_object(OBJECT).set(target=in_c.pid).only("on_tracepoint")
    with purebpf.stacks.load(spec, pids=[in_c.pid]) as loaded:
        loaded.stop()
        loaded.attach()
        event = next(loaded.read("events", timeout=PATIENCE_S))
        assert event.stack.frames == ()
        assert event.stack.end.startswith("unavailable")
        assert loaded.losses()["early"]


def test_an_object_without_calls_is_refused():
    with pytest.raises(LinkError, match=r"include <purebpf/stacks\.h>"):
        purebpf.stacks.load(OBJECT.with_name("attach_probes.bpf.o"))


def test_without_the_library_the_kernel_lacks_the_function():
    with pytest.raises(purebpf.PurebpfError, match="user_stack"):
        purebpf.load(purebpf.read_object(OBJECT).only("on_tracepoint"))


WORK = """
import os, sys, time

def save(file):
    os.fsync(file)

def handle():
    with open(sys.argv[1], "w") as file:
        save(file)

while True:
    handle()
    time.sleep(0.1)
"""


@pytest.mark.nightly
@pytest.mark.needs("clang", "tracefs")
def test_the_example_names_who_syncs(tmp_path: Path) -> None:
    """Functions of a Python program, the innermost first."""
    work = tmp_path / "work.py"
    work.write_text(WORK)
    with subprocess.Popen([sys.executable, work, tmp_path / "file"]) as running:
        command = [sys.executable, str(EXAMPLE), "2"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        running.kill()
    expected = [f"save {work}:5", f"handle {work}:9", f"<module> {work}:12"]
    assert "\n".join(f"    {line}" for line in expected) in printed


USDT = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/usdt.bpf.h>
#include <purebpf/stacks.h>

struct event { __u64 generation; purebpf_stack stack; };
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 16); __type(value, struct event);
} events SEC(".maps");

SEC("usdt") int on_probe(struct pt_regs *ctx)
{
	struct event event = {.stack = user_stack(ctx)};
	long generation = 0;

	bpf_usdt_arg(ctx, 0, &generation);
	event.generation = generation;
	return bpf_ringbuf_output(&events, &event, sizeof(event), 0);
}
char LICENSE[] SEC("license") = "GPL";
"""
COLLECTS = """
import gc, time

def collect():
    gc.collect(1)

while True:
    collect()
    time.sleep(0.01)
"""


@pytest.mark.nightly
@pytest.mark.needs("clang", "python_with_probes")
def test_static_probes_with_their_arguments(tmp_path: Path) -> None:
    python, work = "/usr/bin/python3", tmp_path / "work.py"
    work.write_text(COLLECTS)
    built = purebpf.build.compile(USDT, defines={"__TARGET_ARCH_x86": 1})
    with ExitStack() as owned:
        target = owned.enter_context(subprocess.Popen([python, work]))
        owned.callback(target.kill)
        loaded = owned.enter_context(purebpf.stacks.load(built, pids=[target.pid]))
        program = loaded.programs["on_probe"]
        owned.enter_context(program.attach(f"{python}:python:gc__start", pid=target.pid))
        events = list(islice(loaded.read("events", timeout=PATIENCE_S), EVENTS))
        chains = {
            tuple((frame.function, frame.line) for frame in event.stack.frames if frame.line)
            for event in events
        }
        assert (("collect", 5), ("<module>", 8)) in chains
        assert {event.generation for event in events} >= {1}


def test_the_page_shows_the_example() -> None:
    page = (EXAMPLE.parents[2] / "docs/stacks-library.md").read_text()
    c = EXAMPLE.read_text().split('"""')[3]
    assert c.strip() in page
    assert len([line for line in c.splitlines() if line.strip()]) <= 15
