"""`purebpf.stacks.link` and `attach_to`: objects with stacks that other loaders load."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path

import pytest

import purebpf
import purebpf.stacks
from purebpf.errors import KernelError, LinkError, NotSupportedError
from purebpf.stacks import Stack, StackObject
from tests.support.host.faults import slow_host
from tests.support.programs.own_chains import OwnChain, c_chain, python_chain

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf", "task_pt_regs", "atomic_fetch", "gcc", "x86_64"),
]

DATA = Path(__file__).parents[1] / "data"
OBJECT = DATA / "stacks_of_others.bpf.o"
EVENTS = 20
PATIENCE_S = 120.0 if slow_host() else 20.0


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnChain]:
    with c_chain(tmp_path_factory.mktemp("chain")) as running:
        yield running


LIBBPF = """
import ctypes, sys, time
libbpf = ctypes.CDLL("libbpf.so.1")
for name in ("bpf_object__open_file", "bpf_object__next_program", "bpf_program__attach"):
    getattr(libbpf, name).restype = ctypes.c_void_p
libbpf.bpf_object__next_program.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
loaded = ctypes.c_void_p(libbpf.bpf_object__open_file(sys.argv[1].encode(), None))
assert loaded and not libbpf.bpf_object__load(loaded)
program = ctypes.c_void_p(libbpf.bpf_object__next_program(loaded, None))
assert libbpf.bpf_program__attach(program)
for line in open(f"/proc/self/fdinfo/{libbpf.bpf_program__fd(program)}"):
    if line.startswith("prog_id:"):
        print(int(line.split()[1]), flush=True)
time.sleep(1000)
"""


@contextmanager
def loaded_by_libbpf(linked: bytes, folder: Path) -> Iterator[int]:
    """The id of the one program of an object that libbpf has loaded and attached."""
    (folder / "linked.bpf.o").write_bytes(linked)
    command = (sys.executable, "-c", LIBBPF, folder / "linked.bpf.o")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            yield int(running.stdout.readline())
        finally:
            running.kill()


def is_known(stack: Stack) -> bool:
    """Return True for stacks since `attach_to`: of earlier ones the records are still there."""
    return stack >= 16 and not stack.end.startswith("forgotten")


def chains(traced: StackObject, target: OwnChain) -> list[list[str]]:
    """The functions of the target's own file in so many whole stacks."""
    events = traced.read("events", timeout=PATIENCE_S)
    stacks = (event.stack for event in events if is_known(event.stack))
    gathered = []
    for stack in islice(stacks, EVENTS):
        assert stack.end == "", stack.frames
        assert stack.pid == target.pid
        gathered.append([each.function for each in stack.frames if each.file == target.path])
    assert len(gathered) == EVENTS
    return gathered


@pytest.mark.needs("tracefs", "libbpf")
@pytest.mark.parametrize(
    "program",
    [
        "on_tracepoint",
        pytest.param("on_raw_tracepoint", marks=pytest.mark.nightly),
        pytest.param("on_typed_tracepoint", marks=pytest.mark.nightly),
        pytest.param("on_kprobe", marks=[pytest.mark.needs("kprobes"), pytest.mark.nightly]),
        pytest.param("on_function", marks=[pytest.mark.needs("trampolines")]),
    ],
)
def test_an_object_that_libbpf_loads(program: str, in_c: OwnChain, tmp_path: Path) -> None:
    """The stacks are whole; the maps and variables have their names; a second time is as good."""
    spec = purebpf.read_object(OBJECT).set(target=in_c.pid).only(program)
    with loaded_by_libbpf(purebpf.stacks.link(spec), tmp_path) as ident:
        for _ in range(2):
            with purebpf.stacks.attach_to(ident, pids=[in_c.pid]) as traced:
                expected = [*[name for name, _, _ in in_c.chain], "_start"]
                assert all(chain == expected[-len(chain) :] for chain in chains(traced, in_c))
                assert traced.call_graph == "tables"
                assert traced.globals["target"] == in_c.pid
                assert traced.globals["phase"]
                assert sum(traced.maps["stacks"].values()) >= EVENTS
                assert list(traced.programs) == [program[:15]]
                losses = traced.losses()
                losses.pop("early")
                losses.pop("forgotten")
                if slow_host():
                    losses.pop("copies_lost")
                assert not any(losses.values()), losses
                with pytest.raises(NotSupportedError, match="another loader"):
                    traced.attach()
                with pytest.raises(NotSupportedError, match="another process reads"):
                    purebpf.stacks.attach_to(ident)


@pytest.mark.needs("tracefs", "libbpf")
def test_python_functions_in_an_object_that_libbpf_loads(tmp_path: Path) -> None:
    with python_chain(tmp_path) as target:
        spec = purebpf.read_object(OBJECT).set(target=target.pid).only("on_tracepoint")
        with loaded_by_libbpf(purebpf.stacks.link(spec), tmp_path) as ident:
            for _ in range(2):  # the second time, the program has numbers for all functions
                with purebpf.stacks.attach_to(ident, pids=[target.pid]) as traced:
                    expected = [name for name, _, _ in target.chain]
                    assert chains(traced, target) == [expected] * EVENTS


def test_an_object_that_our_own_loader_loads(in_c: OwnChain) -> None:
    """A uprobe, through the Program and Link of `purebpf.load`, and through a descriptor."""
    spec = purebpf.read_object(OBJECT).set(target=in_c.pid).only("on_call")
    with ExitStack() as owned:
        loaded = owned.enter_context(purebpf.load(purebpf.stacks.link(spec)))
        program = loaded.programs["on_call"]
        libc = "/usr/lib/x86_64-linux-gnu/libc.so.6:getppid"
        owned.enter_context(program.attach(libc, pid=in_c.pid))
        for place in (loaded, program):
            with purebpf.stacks.attach_to(place, pids=[in_c.pid]) as traced:
                expected = [name for name, _, _ in in_c.chain]
                assert chains(traced, in_c) == [[*expected, "_start"]] * EVENTS


@pytest.mark.needs("tracefs")
def test_frame_pointers_for_old_kernels(in_c: OwnChain) -> None:
    spec = purebpf.read_object(OBJECT).set(target=in_c.pid).only("on_tracepoint")
    linked = purebpf.stacks.link(spec, call_graph="fp")
    with purebpf.load(linked) as loaded, purebpf.stacks.attach_to(loaded) as traced:
        loaded.attach()
        stack = next(event.stack for event in traced.read("events", timeout=PATIENCE_S))
        assert traced.call_graph == "fp"
        assert stack.frames
        assert stack.end == "unverified"


def test_programs_without_the_walk_are_refused() -> None:
    spec = purebpf.read_object(DATA / "load_library.bpf.o")
    with purebpf.load(spec) as loaded, pytest.raises(LinkError, match="link"):
        purebpf.stacks.attach_to(loaded)
    with pytest.raises(KernelError, match="not a program"), OBJECT.open() as file:
        purebpf.stacks.attach_to(file)


def test_a_walk_of_another_version_is_refused() -> None:
    linked = purebpf.read_object(purebpf.stacks.link(purebpf.read_object(OBJECT).only("on_call")))
    spec = linked.set(pbs_library_digest=1)
    with purebpf.load(spec) as loaded, pytest.raises(LinkError, match="another version"):
        purebpf.stacks.attach_to(loaded)


def test_the_way_to_walk_is_chosen_when_it_is_linked() -> None:
    with pytest.raises(ValueError, match="tables, deep, copy, fp"):
        purebpf.stacks.link(OBJECT, call_graph="auto")
