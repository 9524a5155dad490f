"""Data sections with another number of elements in the array at their end."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf import build
from purebpf.btf.types.kinds import Datasec
from purebpf.elf import read_object
from purebpf.errors import SchemaError
from purebpf.spec import ObjectSpec

pytestmark = pytest.mark.needs("clang")

_C = """#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct pair { int a; int b; };
int before SEC(".data.table") = 7;
struct pair table[2] SEC(".data.table") = {{1, 2}, {3, 4}};
int alone SEC(".data.alone") = 1;
const volatile long limits[1] = {9};
long sums[1];
SEC("socket") int sum(struct __sk_buff *skb)
{
    sums[0] += limits[0];
    return before + table[0].a + alone;
}
char LICENSE[] SEC("license") = "GPL";
"""


@pytest.fixture(scope="module")
def spec() -> ObjectSpec:
    return read_object(build.compile(_C, cache=False))


def test_an_array_grows_with_its_section(spec: ObjectSpec) -> None:
    resized = spec.resize(**{".data.table": 5, ".rodata": 3, ".bss": 4})
    section = resized.maps[".data.table"]
    assert (section.value_size, len(section.contents)) == (4 + 5 * 8, 4 + 5 * 8)
    values = resized.get("table")
    assert [(pair.a, pair.b) for pair in values] == [(1, 2), (3, 4), (0, 0), (0, 0), (0, 0)]
    assert (resized.get("before"), resized.get("limits")) == (7, (9, 0, 0))
    assert resized.get("sums") == (0, 0, 0, 0)
    assert resized.set(sums=[1, 2, 3, 4]).get("sums") == (1, 2, 3, 4)
    assert resized.btf is not None
    for name in (".data.table", ".rodata", ".bss"):
        datasec = resized.btf.type(resized.maps[name].value_type_id)
        assert isinstance(datasec, Datasec)
        assert (
            datasec.size
            == resized.maps[name].value_size
            == resized.btf.sizeof(resized.maps[name].value_type_id)
        )
        last = datasec.entries[-1]
        assert last.offset + last.size == datasec.size
        assert resized.btf.sizeof(last.type_id) == last.size


def test_bytes_are_configured_as_libbpf_has_them(spec: ObjectSpec) -> None:
    assert spec.configure(".data.table", value_size=44) == spec.resize(**{".data.table": 5})
    both = spec.configure(".data.table", value_size=20, numa_node=0)
    assert (both.maps[".data.table"].value_size, both.maps[".data.table"].numa_node) == (20, 0)
    with pytest.raises(SchemaError, match="45 bytes are not whole elements: table begins at 4 and"):
        spec.configure(".data.table", value_size=45)


def test_an_array_may_become_shorter_and_the_first_spec_stays(spec: ObjectSpec) -> None:
    before = spec.btf
    shorter = spec.resize(**{".data.table": 1})
    assert [(pair.a, pair.b) for pair in shorter.get("table")] == [(1, 2)]
    assert len(spec.get("table")) == 2
    assert spec.btf is before


@pytest.mark.parametrize(
    ("section", "count", "problem"),
    [
        (".data.alone", 4, "its last variable, alone, is not an array"),
        (".data.table", 0, "table cannot have 0 elements"),
        (".data.table", 1 << 30, "table cannot have 1073741824 elements"),
    ],
)
def test_what_cannot_be_resized(spec: ObjectSpec, section: str, count: int, problem: str) -> None:
    with pytest.raises(SchemaError, match=f"map {section} cannot be resized: {problem}"):
        spec.resize(**{section: count})


def test_a_section_without_types_cannot_be_resized() -> None:
    plain = read_object(Path(__file__).parents[2] / "data/elf_no_btf.bpf.o")
    with pytest.raises(SchemaError, match="the section has no BTF"):
        plain.resize(**{".data": 5})
