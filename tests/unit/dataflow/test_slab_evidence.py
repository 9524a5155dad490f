"""Claims about kernel code, judged by the slab caches of addresses."""

from __future__ import annotations

import pytest

pytest.importorskip("iced_x86", reason="the extra purebpf[types] is not installed")

from purebpf.dataflow.btf_types import BtfTypes
from purebpf.dataflow.claims import Claim
from purebpf.dataflow.code import Access
from purebpf.dataflow.kernel_code import Site
from purebpf.dataflow.slab_evidence import Verdict, judge, struct_of, type_by_cache
from purebpf.dataflow.types import Kind, Member, Type
from tests.support.builders.btf_builder import BtfBuilder

LONG = Type(Kind.SCALAR, "long", 8)
READ = Access(reads=True, writes=False, size=8)


def record(name: str, size: int, *members: Member) -> Type:
    made = Type(Kind.STRUCT, name, size)
    made.members = members
    return made


INODE = record("inode", 16, Member("mode", 0, LONG), Member("size", 8, LONG))
OTHER = record("other", 16, Member("left", 0, LONG), Member("right", 8, LONG))
DISK_INODE = record("ext4_inode_info", 32, Member("block", 0, LONG), Member("inode", 8, INODE))


def site(of: Type | None, offset: int = 0, displacement: int = 0) -> Site:
    return Site("rbx", displacement, READ, of, offset)


@pytest.mark.parametrize(
    ("where", "offset", "verdict"),
    [
        (site(DISK_INODE), 0, Verdict.RIGHT),
        (site(INODE), 8, Verdict.RIGHT),
        (site(INODE, 8), 16, Verdict.RIGHT),
        (site(INODE), 0, Verdict.WRONG),
        (site(OTHER), 8, Verdict.WRONG),
        (site(None), 8, Verdict.NONE),
        (site(LONG), 8, Verdict.NONE),
        (site(OTHER), 32, Verdict.NONE),  # behind the members of the struct
    ],
)
def test_a_claim_is_right_if_the_struct_has_its_type_there(
    where: Site, offset: int, verdict: Verdict
) -> None:
    assert judge(where, DISK_INODE, offset) is verdict


def test_an_operand_has_the_member_of_the_struct_of_its_cache() -> None:
    claim = type_by_cache(site(None, displacement=-8), DISK_INODE, 8)
    assert isinstance(claim, Claim)
    assert (claim.name, claim.member, claim.offset) == ("ext4_inode_info", "block", 0)
    assert claim.is_inferred
    inside = type_by_cache(site(None, displacement=8), DISK_INODE, 8)
    assert inside is not None
    assert inside.member == "inode.size"
    assert type_by_cache(site(None, displacement=4), DISK_INODE, 0) is None  # two members
    assert type_by_cache(site(None, displacement=-16), DISK_INODE, 8) is None
    assert type_by_cache(site(None, displacement=24), DISK_INODE, 0) is None  # a hole


@pytest.mark.parametrize(
    ("cache", "size", "struct"),
    [
        ("dentry", 192, "dentry"),
        ("ext4_inode_cache", 1000, "ext4_inode_info"),
        ("filp", 64, "file"),
        ("dentry", 128, ""),  # its objects are too small
        ("kmalloc-64", 64, ""),
    ],
)
def test_a_cache_is_for_a_struct_that_fits(cache: str, size: int, struct: str) -> None:
    b = BtfBuilder()
    u64 = b.int("unsigned long", 8)
    for name, longs in (("dentry", 24), ("ext4_inode_info", 125), ("file", 8), ("kmalloc", 1)):
        b.struct(name, [("all", b.array(u64, longs))])
    found = struct_of(BtfTypes(b.btf()), cache, size)
    assert (found.name if found is not None else "") == struct
