"""The slab objects of registers, as the maps have them."""

from __future__ import annotations

from types import SimpleNamespace

from purebpf.tools.sampleip.slab_objects import REGISTERS, SlabObject, read_objects


def entry(**registers: tuple[int, int, int]) -> SimpleNamespace:
    none = SimpleNamespace(cache=0, offset=0, differs=0)
    by_register = [none] * len(REGISTERS)
    for name, (cache, offset, differs) in registers.items():
        found = SimpleNamespace(cache=cache, offset=offset, differs=differs)
        by_register[REGISTERS.index(name)] = found
    return SimpleNamespace(samples=3, by_register=by_register)


def test_only_the_same_object_in_a_cache_of_one_kind_counts() -> None:
    caches = {
        7: SimpleNamespace(name="dentry", object_size=192, shared=0),
        8: SimpleNamespace(name="pid", object_size=144, shared=1),
    }
    slabs = {
        16: entry(rax=(7, 8, 0), rbx=(7, 8, 1), rcx=(8, 8, 0), rdx=(9, 8, 0)),
        32: entry(),
    }
    found = read_objects({"slab_caches": caches, "slabs": slabs})
    assert found == {16: {"rax": SlabObject("dentry", 192, 8)}, 32: {}}
