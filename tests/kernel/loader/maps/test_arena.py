"""Arenas: memory that programs and processes see at one address."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

import purebpf
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.load import arena
from purebpf.loader.load.arena import have_far_offsets
from purebpf.relocate import Linker
from purebpf.relocate.externs import ResolvedExtern
from purebpf.spec import RelocationKind

DATA = Path(__file__).parents[3] / "data"
ADDRESS = 1 << 44
PAGE = mmap.PAGESIZE

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
    told = r"take 4097 bytes, but it has 1 pages of 4096: spec.resize\(arena=2\)"
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


def test_a_list_is_followed_by_its_pointers():
    with purebpf.load(DATA / "load_arena.bpf.o") as obj:
        obj.programs["bump"].test_run()
        arena = obj.maps["arena"].arena
        assert arena.address == ADDRESS
        values = []
        pointer = obj.globals["head"]
        while pointer:
            node = arena.at(pointer, "struct node")
            assert node == arena.at(pointer & 0xFFFFFFFF, "node")
            assert node == arena.at(ADDRESS + arena.offset(pointer), "struct node")
            values.append(node.value)
            pointer = node.next
        assert values == [13, 12, 11, 10]


def test_a_pointer_that_leads_elsewhere_is_refused():
    with purebpf.load(DATA / "load_arena.bpf.o") as obj:
        arena = obj.maps["arena"].arena
        end = ADDRESS + 100 * PAGE
        told = r"is not in the arena \(0x100000000000 to 0x100000063fff\)"
        for pointer in (0, ADDRESS - 1, end, 100 * PAGE, 1 << 63):
            with pytest.raises(ValueError, match=told):
                arena.at(pointer, "struct node")
        with pytest.raises(ValueError, match="ends 16 bytes on, outside the arena"):
            arena.at(end - 8, "struct node")
        with pytest.raises(KeyError, match="unknown type 'struct nod'; similar: struct node"):
            arena.at(ADDRESS, "struct nod")


def test_an_arena_without_an_address_says_the_one_it_was_given():
    spec = purebpf.read_object(DATA / "load_arena.bpf.o")
    moved = spec.configure("arena", map_extra=0)
    with purebpf.load(moved) as obj:
        obj.programs["bump"].test_run()
        arena = obj.maps["arena"].arena
        assert arena.address % PAGE == 0
        assert arena.address != ADDRESS
        head = arena.at(obj.globals["head"], "struct node")
        assert (head.value, arena.at(head.next, "struct node").value) == (13, 12)


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
        pytest.raises(NotSupportedError, match="the map is not an arena"),
    ):
        assert array.arena


FIRST_PAGE = purebpf.read_object(DATA / "load_arena_first_page.bpf.o")


def test_the_first_page_is_free_beside_variables():
    with purebpf.load(FIRST_PAGE.set(counter=41)) as obj:
        results = [obj.programs["take_first_page"].test_run().retval for _ in range(2)]
        assert results == [1, 0], "the page can be had once"
        assert obj.globals["counter"] == 43
        obj.globals["counter"] = 5
        obj.programs["take_first_page"].test_run()
        assert obj.globals["counter"] == 6
        assert obj.maps["arena"].arena.view[99 * PAGE] == 6


def test_variables_of_a_large_arena_are_where_the_verifier_takes_them():
    pages = 1 << 20
    with purebpf.load(FIRST_PAGE.resize(arena=pages)) as obj:
        taken = obj.programs["take_first_page"].test_run().retval
        assert obj.globals["counter"] == 8
        assert taken == bool(have_far_offsets())
        place = (pages - 1) * PAGE if taken else 0
        assert obj.maps["arena"].arena.view[place] == 8


def test_an_arena_that_is_given_has_variables_where_its_maker_put_them():
    with (
        purebpf.load(FIRST_PAGE.resize(arena=50).set(counter=20)) as first,
        purebpf.load(FIRST_PAGE, maps={"arena": first.maps["arena"]}) as second,
    ):
        second.programs["take_first_page"].test_run()
        assert first.globals["counter"] == 21


@pytest.mark.parametrize(
    ("pages", "size", "far", "place"),
    [
        (100, 1, False, 99 * PAGE),
        (100, PAGE + 1, False, 98 * PAGE),
        (1, PAGE, False, 0),
        ((1 << 29) // PAGE, 1, False, (1 << 29) - PAGE),
        ((1 << 29) // PAGE + 1, 1, False, 0),
        ((1 << 29) // PAGE + 1, 1, True, 1 << 29),
        (1 << 20, PAGE, True, (1 << 20) * PAGE - PAGE),
    ],
)
def test_places_of_variables(
    pages: int, size: int, far: bool, place: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(arena, "have_far_offsets", lambda: far)
    contents = FIRST_PAGE.maps["arena"]._replace(max_entries=pages, contents=bytes(size))
    spec = FIRST_PAGE._replace(maps={"arena": contents})
    placed = arena.place_variables(spec, {})
    assert placed.maps["arena"].contents_offset == place
    linked = Linker(placed, [], lambda _extern: ResolvedExtern()).link("take_first_page")
    assert {each.offset for each in linked.references if each.kind is RelocationKind.DATA} == {
        place
    }
