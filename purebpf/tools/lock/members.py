"""The struct member that a lock is, by the slab cache of its object and BTF. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf
from purebpf.dataflow.slab_caches import structs_in
from purebpf.tuples import NamedTuple

__all__ = ["SlabPlace", "member_at", "member_of"]

_TYPES = {
    "semaphore": ("semaphore",),
    "spinlock": ("spinlock", "raw_spinlock", "qspinlock"),
    "rwsem": ("rw_semaphore",),
    "rwlock": ("rwlock_t", "qrwlock"),
    "rt-mutex": ("rt_mutex", "rt_mutex_base"),
    "rwlock-rt": ("rwlock_t", "rwbase_rt"),
    "pcpu-sem": ("percpu_rw_semaphore",),
    "mutex": ("mutex",),
}
"""The struct that the kernel declares for each kind of lock, by `request.TYPES` without `:R`."""
_DEEPEST = 16


class SlabPlace(NamedTuple):
    """The place of a lock in an object of a slab cache.

    Attributes:
        cache: its name.
        object_size: of an object.
        offsets: of the lock in it: one, or two where it depends on how large the slab is; none
            where several kinds of objects share the cache.
    """

    cache: str
    object_size: int
    offsets: tuple[int, ...]


def member_of(btf: Btf, place: SlabPlace, kind: str) -> str:
    """`ext4_inode_info.vfs_inode.i_rwsem`; "" unless the types leave one answer.

    The struct is one that the cache is named for and that fits in its objects, with a lock of this
    kind where the wait was.

    Args:
        btf: of the kernel.
        place: of the lock.
        kind: one of `purebpf.tools.lock.request.TYPES`.
    """
    wanted = _TYPES.get(kind.partition(":")[0], ())
    for name in structs_in(place.cache):
        paths = set(_paths(btf, name, place, wanted))
        if paths:
            return paths.pop() if len(paths) == 1 else ""
    return ""


def member_at(btf: Btf, struct: str, offset: int, kind: str) -> str:
    """`inode.i_rwsem`; "" unless a struct of this name has a lock of this kind there.

    Args:
        btf: of the kernel.
        struct: its name. The name of a lock's own type says nothing.
        offset: of the lock in it, in bytes.
        kind: one of `purebpf.tools.lock.request.TYPES`.
    """
    wanted = _TYPES.get(kind.partition(":")[0], ())
    numbers = btf.find(struct, Kind.STRUCT)
    paths = {_descend(btf, number, offset, wanted) for number in numbers}
    path = paths.pop() if len(paths) == 1 else None
    return f"{struct}{path}" if path else ""


def _paths(btf: Btf, name: str, place: SlabPlace, wanted: Collection[str]) -> Iterator[str]:
    for number in btf.find(name, Kind.STRUCT):
        if btf.sizeof(number) <= place.object_size:
            for offset in place.offsets:
                if path := _descend(btf, number, offset, wanted):
                    yield name + path


def _descend(
    btf: Btf, type_id: int, offset: int, wanted: Collection[str], depth: int = 0
) -> str | None:
    """The members from a type to the outermost lock at an offset of it; None: there is none."""
    if not offset and any(name in wanted for name in _names(btf, type_id)):
        return ""
    number = btf.resolve(type_id)
    member_type = btf.type(number)
    if depth > _DEEPEST:
        return None
    if member_type.kind == Kind.ARRAY:
        size = btf.sizeof(member_type.element)
        if not size or offset >= size * member_type.count:
            return None
        inner = _descend(btf, member_type.element, offset % size, wanted, depth + 1)
        return None if inner is None else f"[{offset // size}]{inner}"
    if member_type.kind not in (Kind.STRUCT, Kind.UNION):
        return None
    for member in member_type.members:
        start = member.bit_offset // 8
        if member.bit_size or not start <= offset:
            continue
        kind = btf.kind(btf.resolve(member.type_id))
        if kind not in (Kind.STRUCT, Kind.UNION, Kind.ARRAY):
            continue
        if offset >= start + max(btf.sizeof(member.type_id), 1):
            continue
        inner = _descend(btf, member.type_id, offset - start, wanted, depth + 1)
        if inner is not None:
            return f".{member.name}{inner}" if member.name else inner
    return None


def _names(btf: Btf, type_id: int) -> Iterable[str]:
    """Yield the name of a type, and of the types behind it if it is a typedef or a qualifier."""
    while True:
        yield btf.name(type_id)
        member_type = btf.type(type_id)
        if member_type.kind not in (Kind.TYPEDEF, Kind.CONST, Kind.VOLATILE, Kind.TYPE_TAG):
            return
        type_id = member_type.type_id
