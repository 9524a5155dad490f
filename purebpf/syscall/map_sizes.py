"""The sizes of a map's elements, asked of the kernel before an element call.

BPF_MAP_LOOKUP_ELEM and others take addresses without lengths: the kernel copies as many bytes as
the map's keys and values have. A map that came from elsewhere, through a pin, an id or a
descriptor, may be another one than its name promises, and a short buffer is then written beyond its
end. So purebpf asks for the sizes and compares them with the buffers before any such call: in
`purebpf.syscall.bpf` each time, in `purebpf.syscall.map_element` at the creation of the buffers.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Sequence

from purebpf.abi.bpf import bpf_cmd
from purebpf.abi.bpf import bpf_map_type as t
from purebpf.errors import KernelError
from purebpf.syscall import proc
from purebpf.syscall.command import command
from purebpf.tuples import NamedTuple

__all__ = [
    "FD_SIZE",
    "FD_VALUES",
    "MAP_VALUES",
    "PER_CPU",
    "Sizes",
    "read_sizes",
    "require_sizes",
    "value_room",
]

PER_CPU = frozenset(
    {
        t.BPF_MAP_TYPE_PERCPU_HASH,
        t.BPF_MAP_TYPE_LRU_PERCPU_HASH,
        t.BPF_MAP_TYPE_PERCPU_ARRAY,
        t.BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE,
    }
)
"""Each element has a value for every possible CPU."""

MAP_VALUES = frozenset({t.BPF_MAP_TYPE_ARRAY_OF_MAPS, t.BPF_MAP_TYPE_HASH_OF_MAPS})
"""A value goes in as a map's descriptor and comes out as its id."""

FD_VALUES = MAP_VALUES | {
    t.BPF_MAP_TYPE_PROG_ARRAY,
    t.BPF_MAP_TYPE_PERF_EVENT_ARRAY,
    t.BPF_MAP_TYPE_CGROUP_ARRAY,
}
"""The kernel moves a 4-byte descriptor in and a 4-byte id out (IS_FD_MAP and fd arrays)."""

FD_SIZE = 4

_INFO = struct.Struct("=IIII")
"""The beginning of struct bpf_map_info: type, id, key_size, value_size."""


class Sizes(NamedTuple):
    """The bytes that the kernel moves for an element.

    Attributes:
        type: enum bpf_map_type.
        key: bytes of a key.
        value: bytes of a value, of all CPUs in a per-CPU map.
    """

    type: int
    key: int
    value: int


def value_room(map_type: int, value_size: int, cpus: int) -> int:
    """The bytes the kernel reads or writes for one value (bpf_map_value_size, syscall.c)."""
    if map_type in PER_CPU:
        return -(-value_size // 8) * 8 * cpus
    if map_type in FD_VALUES:
        return FD_SIZE
    return value_size


def read_sizes(map_fd: int) -> Sizes:
    """The sizes of an open map (BPF_OBJ_GET_INFO_BY_FD, Linux 4.13, commit 1e2709769086).

    Raises:
        KernelError: EBADF; the descriptor is not a BPF object's.
        NotSupportedError: how many CPUs there may be cannot be read.
    """
    info = bytearray(_INFO.size)
    number = bpf_cmd.BPF_OBJ_GET_INFO_BY_FD
    command(number, "info", bpf_fd=map_fd, info=info, info_len=len(info))
    map_type, _, key, value = _INFO.unpack(info)
    cpus = len(proc.cpu_numbers("possible")) if map_type in PER_CPU else 1
    return Sizes(map_type, key, value_room(map_type, value, cpus))


def require_sizes(
    map_fd: int,
    verb: str,
    keys: int,
    values: int | None,
    *,
    count: int = 1,
    cursors: Sequence[int] = (),
) -> None:
    """Refuse buffers that are not exactly as long as `count` elements of the map.

    Args:
        map_fd: the map.
        verb: the command, for the error: "LOOKUP_ELEM".
        keys: bytes of the keys' buffer.
        values: bytes of the values' buffer; None where the command takes none.
        count: elements.
        cursors: bytes of the buffers for the place in the map, at least 4 and a key's.

    Raises:
        KernelError: EINVAL, the sizes differ; as `read_sizes`. Nothing was read or written.
    """
    sizes = read_sizes(map_fd)
    roomy = all(size >= max(4, sizes.key) for size in cursors)
    if roomy and keys == count * sizes.key and values in (None, count * sizes.value):
        return
    why = f"an element of the map (type {sizes.type}) is a key of {sizes.key} bytes and a value of "
    why += f"{sizes.value}, and the buffers for {count} are of {keys} and {values or 0}"
    raise KernelError(f"bpf(BPF_MAP_{verb})", errno.EINVAL, f"descriptor {map_fd}", why=why)
