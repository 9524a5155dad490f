"""Turns a MapSpec into a map: libbpf's rules, and the parts to leave out for older kernels."""

from __future__ import annotations

import errno
import mmap
from collections.abc import Iterator
from contextlib import ExitStack

from purebpf.abi.bpf import BPF_F_MMAPABLE, bpf_map_type
from purebpf.abi.names import OBJECT_NAME_LENGTH
from purebpf.errors import KernelError, LinkError, NotSupportedError
from purebpf.loader.host import cpus, memlock
from purebpf.loader.host.fd_limits import NONE_LEFT
from purebpf.loader.maps import map_traits
from purebpf.spec import MapSpec
from purebpf.syscall import bpf
from purebpf.syscall.command import Field
from purebpf.syscall.descriptor import Descriptor

__all__ = ["create", "entries", "fit_sizes", "kernel_name"]

_FINAL = {errno.EPERM, errno.ENOMEM, *NONE_LEFT}
"""Errors that leaving something out does not cure."""


def kernel_name(spec: MapSpec, object_name: str = "") -> bytes:
    """Return the map's name in the kernel, before `purebpf.syscall.command` cuts it to 15 bytes.

    A data section is named after its object and itself, `opensnoo.rodata`, as by libbpf; a custom
    one, `.data.foo`, after itself alone.
    """
    name = spec.name
    if spec.section and "." not in spec.section[1:]:
        room = max(OBJECT_NAME_LENGTH - max(len(spec.section), len(".rodata")), 0)
        name = object_name[:room] + spec.section
    return name.encode(errors="replace")


def entries(spec: MapSpec) -> int:
    """The max_entries to ask for.

    A ring buffer's bytes are rounded up to a page times a power of two, if there is one that fits.
    A perf event array of 0 gets an entry for every possible CPU.
    """
    asked = spec.max_entries
    if spec.type in map_traits.RINGS:
        pages = -(-asked // mmap.PAGESIZE)
        size = mmap.PAGESIZE << (pages - 1).bit_length() if pages else 0
        return size if size < 1 << 32 else asked
    if spec.type == bpf_map_type.BPF_MAP_TYPE_PERF_EVENT_ARRAY and not asked:
        return cpus.possible()[-1] + 1  # the index is a CPU's number, and they may have holes
    return asked


def create(spec: MapSpec, btf_fd: int = 0, object_name: str = "") -> Descriptor:
    """Create the map, without contents. `btf_fd` is the object's BTF in the kernel, 0 for none.

    When the kernel refuses, the call is repeated without BTF, then without a name (before Linux
    4.15), then, for a data section, without BPF_F_MMAPABLE (before 5.5, commit fc9702273e2e).

    Raises:
        KernelError: the kernel refused them all; says with which values.
        LinkError: a map-in-map without a template for the inner maps.
        NotSupportedError: a definition of before libbpf 1.0 with fields that are not known; an
            arena without room for its variables.
    """
    if spec.extra:
        raise NotSupportedError(
            f"map {spec.name!r}",
            f"its definition has {spec.extra.hex()} after map_flags, which purebpf does not know",
        )
    spec = fit_sizes(spec)
    if spec.type == bpf_map_type.BPF_MAP_TYPE_ARENA:
        _check_room(spec)
    with ExitStack() as stack:
        inner_fd = 0
        if spec.type in map_traits.MAP_VALUES:
            inner_fd = stack.enter_context(_create_inner(spec, btf_fd)).fileno()
        refused: KernelError | None = None
        kind, key, value, count = spec.type, spec.key_size, spec.value_size, spec.max_entries
        for fields in _attempts(spec, btf_fd, kernel_name(spec, object_name)):
            for is_first in (True, False):
                try:
                    return bpf.map_create(kind, key, value, count, inner_map_fd=inner_fd, **fields)
                except KernelError as error:
                    refused = error
                if not (is_first and refused.errno == errno.EPERM and memlock.raise_memlock()):
                    break
            if refused is not None and refused.errno in _FINAL:
                break
    assert refused is not None
    if refused.errno in NONE_LEFT:
        raise refused
    from purebpf.loader.maps import map_errors

    raise map_errors.creation(refused, spec) from None


def fit_sizes(spec: MapSpec) -> MapSpec:
    """The spec with the sizes that its type prescribes.

    Rings and perf event arrays may declare the type of their records as their value type.
    """
    key_size, value_size = spec.key_size, spec.value_size
    if spec.type in map_traits.RINGS:
        key_size = value_size = 0
    elif spec.type == bpf_map_type.BPF_MAP_TYPE_PERF_EVENT_ARRAY:
        key_size = value_size = map_traits.FD_SIZE
    sizes = (key_size, value_size, entries(spec))
    if sizes == (spec.key_size, spec.value_size, spec.max_entries):
        return spec
    return spec._replace(key_size=sizes[0], value_size=sizes[1], max_entries=sizes[2])


def _check_room(arena: MapSpec) -> None:
    needed = -(-len(arena.contents) // mmap.PAGESIZE)
    if needed > arena.max_entries:
        raise NotSupportedError(
            f"map {arena.name!r}",
            f"its variables take {len(arena.contents)} bytes, but it has {arena.max_entries} "
            f"pages of {mmap.PAGESIZE}: spec.resize({arena.name}={needed})",
        )


def _create_inner(spec: MapSpec, btf_fd: int) -> Descriptor:
    if spec.inner is None:
        raise LinkError("map", spec.name, "a map-in-map needs a template for its inner maps")
    return create(spec.inner, btf_fd)


def _attempts(spec: MapSpec, btf_fd: int, name: bytes) -> Iterator[dict[str, Field]]:
    """The optional fields, from all of them to the fewest."""
    fields: dict[str, Field] = {
        "map_name": name,
        "map_flags": spec.flags,
        "map_extra": spec.map_extra,
    }
    if spec.numa_node is not None:
        fields["numa_node"] = spec.numa_node
    if spec.program_hash:
        fields["excl_prog_hash"] = spec.program_hash
        fields["excl_prog_hash_size"] = len(spec.program_hash)
    if btf_fd and spec.type not in map_traits.UNTYPED and (spec.key_type_id or spec.value_type_id):
        yield fields | {
            "btf_fd": btf_fd,
            "btf_key_type_id": spec.key_type_id,
            "btf_value_type_id": spec.value_type_id,
        }
    yield fields
    if fields["map_name"]:
        fields["map_name"] = b""
        yield fields
    if spec.section and spec.flags & BPF_F_MMAPABLE:
        fields["map_flags"] = spec.flags & ~BPF_F_MMAPABLE
        yield fields
