"""Claims that the objects of slab caches judge, and accesses that they give a type."""

from __future__ import annotations

from enum import Enum

from purebpf.dataflow.btf_types import BtfTypes
from purebpf.dataflow.claims import Claim
from purebpf.dataflow.containers import contains, fits
from purebpf.dataflow.kernel_code import Site
from purebpf.dataflow.layout import find, is_record, name_of
from purebpf.dataflow.slab_caches import structs_in
from purebpf.dataflow.types import Type, bare, byte_size

__all__ = ["Verdict", "judge", "struct_of", "type_by_cache"]

__all__ = ["Verdict", "judge", "type_by_cache"]


class Verdict(Enum):
    """The judgement about a claim."""

    RIGHT = "right"
    WRONG = "wrong"
    TYPED = "the type is from the cache"
    NONE = "no judgement"


def struct_of(types: BtfTypes, cache: str, object_size: int) -> Type | None:
    """Return the struct that a slab cache is for; None: not known."""
    for name in structs_in(cache):
        of = types.struct(name)
        if of is not None and byte_size(of) <= object_size:
            return of
    return None


def judge(site: Site, struct: Type, offset: int) -> Verdict:
    """Compare the type behind a register with the struct of the cache that it leads to.

    Args:
        site: the operand.
        struct: of the cache.
        offset: of the register's address in the object, in bytes.
    """
    of = bare(site.type)
    if of is None or not is_record(of):
        return Verdict.NONE
    start = offset - site.offset
    if start >= byte_size(struct) or site.offset + site.displacement >= byte_size(of):
        return Verdict.NONE  # behind the members, as the registers of the FPU behind a task_struct
    return Verdict.RIGHT if contains(struct, start, of) else Verdict.WRONG


def type_by_cache(site: Site, struct: Type, offset: int) -> Claim | None:
    """Return the member of a cache's struct that an operand touches; None: none, or several."""
    start = offset + site.displacement
    if not fits(struct, start, site.access.size):
        return None
    place = find(struct, start, site.access.size)
    return Claim(struct, name_of(struct), place.path, place.offset, place.size, site.access, True)
