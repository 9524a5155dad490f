"""The objects of slab caches that registers led to, by sampled address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from purebpf.tuples import NamedTuple

__all__ = ["REGISTERS", "Objects", "SlabObject", "read_objects"]

REGISTERS = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10"),
    *("r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"),
)
"""In the order of `struct pt_regs`."""


class SlabObject(NamedTuple):
    """The object that a register led to, in each sample.

    Attributes:
        cache: its name.
        object_size: of its objects, in bytes.
        offset: of the register's address in the object, in bytes.
    """

    cache: str
    object_size: int
    offset: int


Objects = Mapping[str, SlabObject]
"""Objects by register. A register that led to several, to none, or to a shared cache has none."""


def read_objects(maps: Mapping[str, Any]) -> dict[int, Objects]:
    """Return the objects by address, from the maps of bpf_src/sampleip.bpf.c.

    Raises:
        KernelError: a map could not be read.
    """
    caches = {
        number: (str(cache.name), int(cache.object_size))
        for number, cache in maps["slab_caches"].items()
        if not cache.shared
    }
    return {
        int(address): {
            register: SlabObject(*caches[found.cache], found.offset)
            for register, found in zip(REGISTERS, entry.by_register, strict=True)
            if found.cache in caches and not found.differs
        }
        for address, entry in maps["slabs"].items()
    }
