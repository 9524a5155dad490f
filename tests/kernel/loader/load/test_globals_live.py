"""Global variables: mapped, unmapped, constant, typed and raw."""

from __future__ import annotations

import errno
import os
import pickle
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import purebpf
from purebpf.abi.bpf import BPF_F_MMAPABLE, BPF_F_RDONLY_PROG, bpf_map_type
from purebpf.errors import KernelError, NotSupportedError, SchemaError
from purebpf.loader.load.globals import Globals
from purebpf.loader.maps.map import Map
from purebpf.spec import MapSpec, ObjectSpec, VariableSpec
from purebpf.syscall.backend import replaced
from tests.support.builders.btf_builder import BtfBuilder
from tests.support.host.backends import Call, Interposer

pytestmark = pytest.mark.needs("bpf")

DATA = Path(__file__).parents[3] / "data"

BUILDER = BtfBuilder()
U32 = BUILDER.int("unsigned int", 4)
U64 = BUILDER.int("unsigned long long", 8)
PAIR = BUILDER.struct("pair", [("first", U32), ("second", U32)])
LIST = BUILDER.struct("list", [("count", U32), ("items", BUILDER.array(U32, 0))])
WORDS = BUILDER.array(U32, 5)
GRID = BUILDER.array(BUILDER.array(PAIR, 2), 3)
BTF = BUILDER.btf()

VARIABLES = (
    VariableSpec("total", ".bss", 0, 8, U64),
    VariableSpec("pair", ".bss", 8, 8, PAIR),
    VariableSpec("blob", ".bss", 16, 3, 0),
    VariableSpec("list", ".lists", 0, 16, LIST),
    VariableSpec("victim", ".lists", 16, 4, U32),
    VariableSpec("limit", ".rodata", 4, 4, U32),
    VariableSpec("words", ".arrays", 4, 20, WORDS),
    VariableSpec("grid", ".arrays", 24, 48, GRID),
    VariableSpec("steps", ".steps", 0, 20, WORDS),
    VariableSpec("elsewhere", ".data", 0, 4, U32),
)


def section(name: str, size: int, flags: int, **more) -> MapSpec:
    array = bpf_map_type.BPF_MAP_TYPE_ARRAY
    return MapSpec(name, array, 4, size, 1, flags=flags, section=name, **more)


@pytest.fixture(params=["mapped", "unmapped"])
def spec(request: pytest.FixtureRequest) -> ObjectSpec:
    flags = BPF_F_MMAPABLE if request.param == "mapped" else 0
    constant = struct.pack("=II", 0, 4711)
    maps = [
        section(".bss", 19, flags),
        section(".lists", 20, flags, contents=struct.pack("=5I", 2, 5, 6, 7, 42)),
        section(".arrays", 76, flags),
        section(".steps", 20, flags | BPF_F_RDONLY_PROG, contents=bytes(20), frozen=True),
        section(".rodata", 8, flags | BPF_F_RDONLY_PROG, contents=constant, frozen=True),
    ]
    return ObjectSpec(
        name="object",
        source="object.o",
        byteorder="little",
        license="GPL",
        programs={},
        functions={},
        maps={each.name: each for each in maps},
        variables={each.name: each for each in VARIABLES},
        btf=BTF,
    )


@pytest.fixture
def maps(spec: ObjectSpec) -> Iterator[dict[str, Map]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(Map.create(each, btf=BTF)) for name, each in spec.maps.items()
        }


@pytest.fixture
def variables(spec: ObjectSpec, maps: dict[str, Map]) -> Iterator[Globals]:
    with Globals(spec, maps) as made:
        yield made


def raw(maps: dict[str, Map], name: str) -> bytes:
    from purebpf.syscall import bpf

    data = bytearray(maps[name].info.value_size)
    bpf.map_lookup_elem(maps[name].fileno(), bytes(4), data)
    return bytes(data)


def test_names_are_those_of_the_sections_that_there_are(variables):
    assert list(variables) == [
        *("total", "pair", "blob", "list", "victim", "limit", "words", "grid", "steps")
    ]
    assert len(variables) == 9
    assert "total" in variables
    assert "elsewhere" not in variables
    with pytest.raises(KeyError):
        variables["elsewhere"]


def test_a_write_changes_that_variable_and_no_byte_else(variables, maps):
    variables["total"] = 2**64 - 1
    variables["pair"] = (1, 2)
    variables["blob"] = b"abc"
    assert raw(maps, ".bss") == b"\xff" * 8 + struct.pack("=II", 1, 2) + b"abc"
    variables["total"] = 0
    assert raw(maps, ".bss") == bytes(8) + struct.pack("=II", 1, 2) + b"abc"


def test_a_read_sees_what_was_written_by_others(variables, maps):
    assert variables["total"] == 0
    data = struct.pack("=QII", 10**15, 5, 6) + b"xyz"
    from purebpf.syscall import bpf

    bpf.map_update_elem(maps[".bss"].fileno(), bytes(4), data)
    assert variables["total"] == 10**15
    assert (variables["pair"].first, variables["pair"].second) == (5, 6)
    assert variables["blob"] == b"xyz"
    assert dict(variables)["limit"] == 4711


def test_a_constant_is_read_and_not_written(variables):
    assert variables["limit"] == 4711
    with pytest.raises(NotSupportedError, match=r"use spec\.set\(limit=\.\.\.\) before load"):
        variables["limit"] = 5
    assert variables["limit"] == 4711


def test_a_value_that_does_not_fit_is_refused_before_anything_is_written(variables, maps):
    for name, value in (("total", 2**64), ("total", "x"), ("pair", (1, 2, 3)), ("blob", b"four")):
        with pytest.raises(SchemaError):
            variables[name] = value
    assert raw(maps, ".bss") == bytes(19)


def test_an_array_at_the_end_is_as_long_as_its_variable(variables, maps):
    assert tuple(variables["list"].items) == (5, 6, 7)
    variables["list"] = {"count": 3, "items": [1, 2, 3]}
    assert (tuple(variables["list"].items), variables["victim"]) == ((1, 2, 3), 42)
    with pytest.raises(SchemaError, match="variable list has 16 bytes, not 20"):
        variables["list"] = {"count": 4, "items": [9] * 4}
    variables["list"] = {"count": 0, "items": [8]}
    assert raw(maps, ".lists") == struct.pack("=5I", 0, 8, 2, 3, 42)


def test_an_element_of_an_array_is_written_alone(variables, maps):
    words = variables["words"]
    words[3] = 5
    assert raw(maps, ".arrays") == struct.pack("=19I", *[0] * 4, 5, *[0] * 14)
    variables["words"] = (1, 2, 3, 4, 5)  # as a program would, behind the view's back
    words[-1] = 7
    assert words == (1, 2, 3, 4, 7) == tuple(words)
    assert (words[0], words[1:3], len(words), 4 in words) == (1, (2, 3), 5, True)
    assert str(words) == "(1, 2, 3, 4, 7)"
    assert pickle.loads(pickle.dumps(words)) == (1, 2, 3, 4, 7)
    assert raw(maps, ".arrays") == struct.pack("=19I", 0, 1, 2, 3, 4, 7, *[0] * 13)


def test_writing_an_element_of_mapped_memory_reads_nothing_before(variables, maps):
    words, mapped = variables["words"], maps[".arrays"].info.flags & BPF_F_MMAPABLE
    words[0] = 1
    with replaced(Interposer()) as substitute:
        words[4] = 9
    assert words == [1, 0, 0, 0, 9]
    assert bool(substitute.calls) == (not mapped)


def test_an_array_of_arrays_is_written_by_two_indexes(variables):
    grid = variables["grid"]
    grid[2][1] = (8, 9)
    grid[0][0] = {"first": 3, "second": 4}
    assert (grid[2][1].second, grid[0][0].first) == (9, 3)
    assert grid == (((3, 4), (0, 0)), ((0, 0), (0, 0)), ((0, 0), (8, 9)))
    grid[1] = grid[2]
    assert grid[1] == [(0, 0), (8, 9)]


def test_an_element_that_does_not_fit_is_refused(variables, maps):
    for index in (5, -6):
        with pytest.raises(IndexError, match=rf"variable words has 5 elements, not \[{index}\]"):
            variables["words"][index] = 1
    with pytest.raises(SchemaError, match=r"variable words\[2\]: .* is out of range"):
        variables["words"][2] = 1 << 32
    with pytest.raises(NotSupportedError, match=r"use spec\.set\(steps=\.\.\.\) before load"):
        variables["steps"][2] = 1
    assert raw(maps, ".arrays") == bytes(76)


def test_a_variable_cannot_be_deleted(variables):
    with pytest.raises(TypeError, match="cannot be deleted"):
        del variables["total"]


def test_closing_unmaps_and_the_maps_stay_open(spec, maps):
    before = len(os.listdir("/proc/self/fd"))
    variables = Globals(spec, maps)
    variables["total"] = 5
    variables.close()
    variables.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert raw(maps, ".bss")[:8] == struct.pack("=Q", 5)
    assert variables["total"] == 5  # mapped anew
    variables.close()


def test_without_btf_a_variable_is_its_bytes(spec, maps):

    with Globals(spec._replace(btf=None), maps) as variables:
        variables["total"] = struct.pack("=Q", 77)
        assert variables["total"] == struct.pack("=Q", 77)


def test_a_mapped_section_needs_no_system_call(variables, maps):
    mapped = maps[".bss"].info.flags & BPF_F_MMAPABLE
    variables["total"] = 1
    with replaced(Interposer()) as substitute:
        variables["total"] = variables["total"] + 1
    assert variables["total"] == 2
    assert bool(substitute.calls) == (not mapped)


def test_a_refused_read_or_write_is_an_error(variables, maps):
    if maps[".bss"].info.flags & BPF_F_MMAPABLE:
        maps[".bss"].close()
        with pytest.raises(ValueError, match="closed"):
            variables["total"]
        return

    def decide(call: Call) -> int | None:
        return errno.EBUSY if call.command == "BPF_MAP_UPDATE_ELEM" else None

    with replaced(Interposer(decide)), pytest.raises(KernelError, match="'total'") as caught:
        variables["total"] = 1
    assert caught.value.errno == errno.EBUSY


@pytest.mark.needs("tracefs")
def test_a_running_program_and_python_see_the_same_variables():
    spec = purebpf.read_object(DATA / "load_counter.bpf.o").set(target_pid=os.getpid())
    calls = 101
    with purebpf.load(spec) as obj:
        assert obj.globals["target_pid"] == os.getpid()
        obj.globals["step"] = 1000
        with obj.programs["count_calls"].attach():
            before = obj.globals["calls_seen"]
            for _ in range(calls):
                os.getppid()
            after = obj.globals["calls_seen"]
        assert after - before == calls * 1000
