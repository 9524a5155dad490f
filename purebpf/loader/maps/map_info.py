"""The kernel's description of a map."""

from __future__ import annotations

import struct

from purebpf.abi.bpf import bpf_map_type
from purebpf.abi.layouts import BPF_MAP_INFO
from purebpf.loader.maps import map_traits
from purebpf.syscall import bpf
from purebpf.tuples import NamedTuple

__all__ = ["MapInfo", "read_info"]

_TYPES: dict[int, int] = {int(map_type): map_type for map_type in bpf_map_type}
_NUMBERS = (
    *("type", "id", "key_size", "value_size", "max_entries", "map_flags"),
    *("btf_id", "btf_key_type_id", "btf_value_type_id", "map_extra"),
)
"""Fields of struct bpf_map_info, in the order of MapInfo, which has the name third."""


class MapInfo(NamedTuple):
    """struct bpf_map_info; fields that an older kernel does not report are 0.

    Attributes:
        type: enum bpf_map_type; a plain int when it is newer than our tables.
        id: its number, as in `bpftool map`.
        name: at most 15 characters; "" before Linux 4.15 (commit ad5b177bd73f).
        key_size: bytes.
        value_size: bytes, of one CPU's value in a per-CPU map.
        max_entries: elements; bytes in a ring buffer.
        flags: BPF_F_*.
        btf_id: the kernel's number of its BTF, 0 without.
        key_type_id: in that BTF.
        value_type_id: in that BTF.
        map_extra: hash functions of a bloom filter, address of an arena.
    """

    type: int
    id: int
    name: str
    key_size: int
    value_size: int
    max_entries: int
    flags: int
    btf_id: int
    key_type_id: int
    value_type_id: int
    map_extra: int

    def __str__(self) -> str:
        return (
            f"{map_traits.type_name(self.type)}, key {self.key_size} B, value {self.value_size} B, "
            f"{self.max_entries} entries, flags {self.flags:#x}"
        )


def read_info(fd: int) -> MapInfo:
    """The info of an open map (BPF_OBJ_GET_INFO_BY_FD, Linux 4.13, commit 1e2709769086).

    Raises:
        KernelError: EINVAL, `fd` is not a map.
    """
    data = bytearray(BPF_MAP_INFO.size)  # of which an older kernel fills less
    bpf.obj_get_info_by_fd(fd, data)
    places = BPF_MAP_INFO.fields
    kind, number, *others = [
        int(struct.unpack_from("=" + places[name][1], data, places[name][0])[0])
        for name in _NUMBERS
    ]
    start, code = places["name"]
    (name,) = struct.unpack_from(code, data, start)
    kind = _TYPES.get(kind, kind)
    return MapInfo(kind, number, name.partition(b"\0")[0].decode(errors="replace"), *others)
