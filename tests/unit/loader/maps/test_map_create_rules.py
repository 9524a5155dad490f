"""How a spec is bent into what the kernel accepts."""

from __future__ import annotations

import mmap

import pytest

from purebpf.abi.bpf import bpf_map_type as t
from purebpf.loader.host import cpus
from purebpf.loader.maps import map_create
from purebpf.loader.maps.map_info import MapInfo
from purebpf.loader.maps.map_pin import differences
from purebpf.spec import MapSpec

PAGE = mmap.PAGESIZE


def spec(kind: int = t.BPF_MAP_TYPE_HASH, **changed) -> MapSpec:
    fields = {"name": "m", "key_size": 4, "value_size": 8, "max_entries": 10} | changed
    return MapSpec(type=kind, **fields)


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (".rodata", b"opensnoo.rodata"),
        (".bss", b"opensnoo.bss"),
        (".kconfig", b"opensno.kconfig"),
        (".data.foo", b".data.foo"),
        (".rodata.cst16", b".rodata.cst16"),
        (".rodata.str1.1", b".rodata.str1.1"),
        (".rodata.very.long.name", b".rodata.very.long.name"),  # cut by the call
    ],
)
def test_a_data_section_is_called_after_its_object_as_by_libbpf(section, expected):
    data = spec(t.BPF_MAP_TYPE_ARRAY, name=section, section=section)
    assert map_create.kernel_name(data, "opensnoop") == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (0, 0),
        (1, PAGE),
        (PAGE, PAGE),
        (PAGE + 1, 2 * PAGE),
        (3 * PAGE, 4 * PAGE),
        (256 * 1024, max(256 * 1024, PAGE)),
        (1 << 31, 1 << 31),
        ((1 << 31) + 1, (1 << 31) + 1),
    ],
)
@pytest.mark.parametrize("kind", [t.BPF_MAP_TYPE_RINGBUF, t.BPF_MAP_TYPE_USER_RINGBUF])
def test_a_ring_is_a_power_of_two_of_pages(kind, asked, expected):
    assert map_create.entries(spec(kind, max_entries=asked)) == expected


@pytest.mark.parametrize(("asked", "expected"), [(0, 6), (4, 4), (6, 6), (1024, 1024)])
def test_a_perf_event_array_of_0_has_an_index_for_every_cpu_number(monkeypatch, asked, expected):
    monkeypatch.setattr(cpus, "possible", lambda: (0, 1, 4, 5))
    perf = spec(t.BPF_MAP_TYPE_PERF_EVENT_ARRAY, max_entries=asked)
    assert map_create.entries(perf) == expected


def test_rings_may_declare_what_their_records_are():
    ring = map_create.fit_sizes(spec(t.BPF_MAP_TYPE_RINGBUF, key_size=0, value_size=40))
    assert (ring.key_size, ring.value_size) == (0, 0)
    perf = map_create.fit_sizes(spec(t.BPF_MAP_TYPE_PERF_EVENT_ARRAY, key_size=0, value_size=40))
    assert (perf.key_size, perf.value_size) == (4, 4)


def test_flags_are_those_that_were_declared():
    assert map_create.fit_sizes(spec(numa_node=0, flags=1)).flags == 1


def info(kind: int, **changed) -> MapInfo:
    fields = {
        "type": kind,
        "id": 1,
        "name": "m",
        "key_size": 4,
        "value_size": 8,
        "max_entries": 10,
        "flags": 0,
        "btf_id": 0,
        "key_type_id": 0,
        "value_type_id": 0,
        "map_extra": 0,
    } | changed
    return MapInfo(**fields)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, []),
        ({"name": "other", "btf_id": 7}, []),
        ({"type": t.BPF_MAP_TYPE_LRU_HASH}, ["type LRU_HASH, not HASH"]),
        ({"key_size": 8}, ["key_size 8, not 4"]),
        ({"value_size": 4, "max_entries": 9}, ["value_size 4, not 8", "max_entries 9, not 10"]),
        ({"flags": 1}, ["map_flags 0x1, not 0x0"]),
        ({"map_extra": 3}, ["map_extra 3, not 0"]),
    ],
    ids=str,
)
def test_a_pinned_map_is_compared_attribute_by_attribute(changed, said):
    assert differences(spec(), info(t.BPF_MAP_TYPE_HASH, **changed)) == said


def test_what_the_kernel_adds_is_not_a_difference():
    ring = spec(t.BPF_MAP_TYPE_RINGBUF, key_size=0, value_size=0, max_entries=PAGE - 1)
    rounded = info(t.BPF_MAP_TYPE_RINGBUF, key_size=0, value_size=0, max_entries=PAGE)
    assert differences(ring, rounded) == []
    devmap = spec(t.BPF_MAP_TYPE_DEVMAP, value_size=4)
    assert differences(devmap, info(t.BPF_MAP_TYPE_DEVMAP, value_size=4, flags=0x80)) == []
