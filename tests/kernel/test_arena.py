"""Arenas: memory that programs and processes see at one address."""

from __future__ import annotations

from pathlib import Path

import pytest

import purebpf
from purebpf.errors import KernelError, NotSupportedError

DATA = Path(__file__).parents[1] / "data"
ADDRESS = 1 << 44

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "arena")


def test_globals_in_an_arena_are_set_run_on_and_read():
    spec = purebpf.read_object(DATA / "load_arena.bpf.o")
    assert {name: each.map for name, each in spec.variables.items()} == {
        "counter": "arena",
        "head": "arena",
        "nodes": "arena",
    }
    with purebpf.load(spec.set(counter=41)) as obj:
        assert obj.programs["bump"].test_run().retval == 42
        assert obj.globals["counter"] == 42
        nodes = obj.globals["nodes"]
        assert [each.value for each in nodes] == [10, 11, 12, 13]
        assert nodes[0].next == 0


def test_an_arena_without_room_for_its_variables_says_how_many_pages_they_need():
    spec = purebpf.read_object(DATA / "load_arena.bpf.o").resize(arena=1)
    arena = spec.maps["arena"]
    large = spec._replace(maps={**spec.maps, "arena": arena._replace(contents=bytes(4097))})
    told = r"take 4097 bytes, and it has 1 pages of 4096: spec.resize\(arena=2\)"
    with pytest.raises(NotSupportedError, match=told):
        purebpf.load(large)
    purebpf.load(large.resize(arena=2)).close()


def test_pointers_of_programs_lead_to_the_same_bytes_here():
    with purebpf.load(DATA / "load_arena.bpf.o") as obj:
        obj.programs["bump"].test_run()
        view = obj.maps["arena"].arena.view
        assert len(view) == 100 * 4096
        values = []
        at = obj.globals["head"]
        while at:
            place = at - (ADDRESS & 0xFFFFFFFF) if at < 1 << 32 else at - ADDRESS
            at, value = memoryview(view[place : place + 16]).cast("Q")
            values.append(value)
        assert values == [13, 12, 11, 10]
        view[4096] = 5
        assert view[4096] == 5


def test_an_address_is_taken_once():
    taken = "at address 0x100000000000: mmap failed with EEXIST"
    with (
        purebpf.load(DATA / "load_arena.bpf.o") as obj,
        pytest.raises(KernelError, match=taken),
    ):
        obj.maps["arena"].mmap()


def test_another_map_has_no_pages():
    with (
        purebpf.Map.create(purebpf.MapSpec("array", 2, 4, 4, 1)) as array,
        pytest.raises(NotSupportedError, match="it is no arena"),
    ):
        assert array.arena
