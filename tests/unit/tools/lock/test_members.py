"""Which member of a struct a lock is, by types that a test makes."""

from __future__ import annotations

import pytest

from purebpf.tools.lock.members import SlabPlace, member_of
from purebpf.tools.lock.names import LockNames
from tests.support.builders.btf_builder import BtfBuilder


@pytest.fixture(scope="module")
def btf():
    b = BtfBuilder()
    u32 = b.int("unsigned int", 4)
    u64 = b.int("unsigned long", 8)
    raw = b.struct("raw_spinlock", [("raw_lock", u32)])
    spinlock = b.struct("spinlock", [("rlock", raw)])
    spinlock_t = b.typedef("spinlock_t", spinlock)
    rwlock = b.typedef("rwlock_t", b.struct("", [("raw_lock", b.struct("qrwlock", [("x", u64)]))]))
    rwsem = b.struct("rw_semaphore", [("count", u64), ("wait_lock", spinlock_t)])
    inode = b.struct("inode", [("i_lock", spinlock_t), ("i_rwsem", rwsem)])
    b.struct("ext4_inode_info", [("flags", u64), ("vfs_inode", b.const(inode))])
    locks = b.union("", [("lock", spinlock_t), ("count", u32)])
    b.struct("sighand_struct", [("", locks), ("locks", b.array(rwlock, 3))])
    return b.btf()


def place(cache: str, *offsets: int, size: int = 512) -> SlabPlace:
    return SlabPlace(cache, size, offsets)


@pytest.mark.parametrize(
    ("cache", "offset", "kind", "path"),
    [
        ("ext4_inode_cache", 16, "rwsem:W", "ext4_inode_info.vfs_inode.i_rwsem"),
        ("ext4_inode_cache", 24, "spinlock", "ext4_inode_info.vfs_inode.i_rwsem.wait_lock"),
        ("ext4_inode_info", 8, "spinlock", "ext4_inode_info.vfs_inode.i_lock"),
        ("sighand_cache", 0, "spinlock", "sighand_struct.lock"),
        ("sighand_cache", 16, "rwlock:R", "sighand_struct.locks[1]"),
        ("ext4_inode_cache", 16, "mutex", ""),
        ("ext4_inode_cache", 12, "rwsem:W", ""),
        ("ext4_inode_cache", 400, "rwsem:W", ""),
        ("kmalloc-512", 16, "rwsem:W", ""),
    ],
)
def test_a_lock_is_a_member_by_its_offset_and_type(btf, cache, offset, kind, path):
    assert member_of(btf, place(cache, offset), kind) == path


def test_a_struct_that_is_larger_than_the_objects_is_another_one(btf):
    assert member_of(btf, place("ext4_inode_cache", 16, size=16), "rwsem:W") == ""


def test_two_places_leave_one_answer_or_none(btf):
    name = "ext4_inode_info.vfs_inode.i_lock"
    assert member_of(btf, place("ext4_inode_cache", 8, 400), "spinlock") == name
    assert member_of(btf, place("ext4_inode_cache", 8, 24), "spinlock") == ""
    assert member_of(btf, place("ext4_inode_cache"), "spinlock") == ""


def test_names_say_what_is_known_and_from_where():
    names = LockNames([0x1000, 0], 0x100, lambda of, kind: "mm.lock" if kind == "mutex" else "")
    slab = place("mm", 0)
    assert names.name(0x1010, "mutex", slab) == ("run queue of CPU 0", "CPU")
    assert names.name(0x5000, "mutex", slab) == ("mm.lock at 0x5000", "slab mm")
    assert names.name(0x5000, "spinlock", slab) == ("0x5000 in mm", "slab mm")
    assert names.name(0x5000, "spinlock") == ("0x5000", "")
