"""BPF iterators: what they write is what the kernel has."""

from __future__ import annotations

import os
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import purebpf
from purebpf.abi.bpf import bpf_link_type
from purebpf.errors import FormatError, SchemaError
from purebpf.loader.attach.iterator import IteratorLink
from purebpf.syscall import proc

DATA = Path(__file__).parents[3] / "data"
SPEC = purebpf.read_object(DATA / "attach_iterators.bpf.o")

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")


def numbers(data: bytes) -> list[int]:
    return [number for (number,) in struct.iter_unpack("=I", data)]


def identities(data: bytes) -> list[int]:
    return [number for (number,) in struct.iter_unpack("=Q", data)]


def test_every_task_is_listed_each_time_it_is_read():
    with purebpf.load(SPEC.only("list_tasks")) as obj, obj.programs["list_tasks"].attach() as link:
        assert link.info.type == bpf_link_type.BPF_LINK_TYPE_ITER
        with subprocess.Popen(["sleep", "60"]) as child:
            assert {os.getpid(), child.pid} <= set(numbers(link.read()))
            child.kill()
        assert os.getpid() in numbers(link.read())
        with link.open_file() as file:
            assert len(file.read(4)) == 4


@pytest.mark.needs("new_iterators")
def test_the_threads_of_one_process():
    ready, leave = threading.Event(), threading.Event()

    def stay() -> None:
        ready.set()
        leave.wait()

    thread = threading.Thread(target=stay)
    thread.start()
    ready.wait()
    try:
        with purebpf.load(SPEC.only("list_tasks")) as obj:
            program = obj.programs["list_tasks"]
            with program.attach(pid=os.getpid()) as link:
                own = {int(name) for name in os.listdir("/proc/self/task")}
                assert set(numbers(link.read())) == own
            with program.attach(tid=thread.native_id) as link:
                assert numbers(link.read()) == [thread.native_id]
    finally:
        leave.set()
        thread.join()


def test_the_elements_of_a_map():
    with purebpf.load(SPEC.only("list_squares")) as obj:
        for number in (2, 3, 5):
            obj.maps["squares"][number] = number**2
        with obj.programs["list_squares"].attach(map=obj.maps["squares"]) as link:
            found = dict(struct.iter_unpack("=QQ", link.read()))
        assert found == {2: 4, 3: 9, 5: 25}
        with pytest.raises(purebpf.AttachError, match=r"EBADF|EINVAL"):
            obj.programs["list_squares"].attach()


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup of this test's own."""
    root = next(where for where, kind in proc.mounts() if kind == "cgroup2")
    place = Path(f"{root}/purebpf-{os.getpid()}")
    place.mkdir()
    yield place
    place.rmdir()


@pytest.mark.needs("new_iterators", "cgroup2")
def test_cgroups_in_order(cgroup: Path):
    with purebpf.load(SPEC.only("list_cgroups")) as obj:
        program = obj.programs["list_cgroups"]
        with program.attach(cgroup=str(cgroup)) as link:
            assert identities(link.read()) == [cgroup.stat().st_ino]
        with program.attach(cgroup=str(cgroup), order="ancestors") as link:
            found = identities(link.read())
        assert found == [cgroup.stat().st_ino, cgroup.parent.stat().st_ino]
        with pytest.raises(ValueError, match="unknown order 'sideways'; known: self, desc"):
            program.attach(cgroup=str(cgroup), order="sideways")


def test_options_that_exclude_each_other():
    with purebpf.load(SPEC.only("list_tasks")) as obj:
        with pytest.raises(TypeError, match=r"takes one of map=, pid=, tid= and cgroup="):
            obj.programs["list_tasks"].attach(pid=1, tid=1)
        with pytest.raises(TypeError, match="takes one of"):
            obj.programs["list_tasks"].attach("target")


def test_records_have_the_types_of_the_object():
    with purebpf.load(SPEC.only("list_squares")) as obj:
        obj.maps["squares"].update({number: number**2 for number in range(11)})
        with obj.programs["list_squares"].attach(map=obj.maps["squares"]) as link:
            found = sorted(link.records("struct square"))
            assert [(each.number, each.result) for each in found] == [(n, n**2) for n in range(11)]
            assert len(list(link.records("square"))) == 11
            with pytest.raises(SchemaError, match="BTF does not have type 'struct nothing'"):
                next(link.records("struct nothing"))


def test_an_iterator_opened_from_a_pin_has_bytes_only(bpffs: Path):
    with purebpf.load(SPEC.only("list_tasks")) as obj:
        with obj.programs["list_tasks"].attach() as link:
            link.pin(bpffs / "tasks")
        with IteratorLink.open(bpffs / "tasks") as found:
            assert os.getpid() in numbers(found.read())
            with pytest.raises(SchemaError, match="its program has no BTF"):
                next(found.records("struct square"))
        link.detach()


@pytest.mark.needs("new_iterators")
def test_what_ends_within_a_record_says_so():
    with (
        purebpf.load(SPEC.only("list_tasks")) as obj,
        obj.programs["list_tasks"].attach(tid=os.getpid()) as link,
    ):
        assert len(link.read()) == 4
        with pytest.raises(FormatError, match="the end: 4 of 16 bytes of struct square"):
            list(link.records("struct square"))


@pytest.mark.needs("new_iterators")
@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("list_tasks", {"map": "squares"}, "iter/task takes pid= or tid=, not map="),
        ("list_tasks", {"cgroup": "/"}, "iter/task takes pid= or tid=, not cgroup="),
        ("list_squares", {"pid": 1}, "iter/bpf_map_elem takes map=, not pid="),
        ("list_cgroups", {"tid": 1}, "iter/cgroup takes cgroup=, not tid="),
    ],
)
def test_what_others_run_over_is_not_taken_for_something_else(name: str, options, said: str):
    with purebpf.load(SPEC.only(name)) as obj:
        if "map" in options:
            options = {"map": obj.maps["squares"]}
        with pytest.raises(TypeError, match=said):
            obj.programs[name].attach(**options)


@pytest.mark.needs("new_iterators")
@pytest.mark.parametrize(("name", "said"), [("list_squares", "map="), ("list_cgroups", "cgroup=")])
def test_an_iterator_without_its_options_says_which_it_needs(name: str, said: str):
    with (
        purebpf.load(SPEC.only(name)) as obj,
        pytest.raises(purebpf.AttachError, match=f"takes {said}"),
    ):
        obj.programs[name].attach()


@pytest.mark.parametrize("options", [{"pid": -1}, {"tid": -1}, {"pid": 1 << 40}])
def test_numbers_that_no_process_has(options):
    with (
        purebpf.load(SPEC.only("list_tasks")) as obj,
        pytest.raises(ValueError, match="no process or thread has ID"),
    ):
        obj.programs["list_tasks"].attach(**options)
