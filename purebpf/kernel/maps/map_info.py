"""What the kernel says about a map."""

from __future__ import annotations

from typing import NamedTuple

from purebpf.abi.layouts import BPF_MAP_INFO
from purebpf.kernel.maps import map_traits
from purebpf.syscall import bpf

__all__ = ["MapInfo", "read_info"]


class MapInfo(NamedTuple):
    """struct bpf_map_info; what an older kernel does not report is 0.

    Attributes:
        type: enum bpf_map_type.
        id: its number, as in `bpftool map`.
        name: at most 15 characters; "" before Linux 4.15.
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
    """The info of an open map (BPF_OBJ_GET_INFO_BY_FD, Linux 4.13).

    Raises:
        KernelError: EINVAL, `fd` is no map.
    """
    data = bytearray(BPF_MAP_INFO.size)
    known = bpf.obj_get_info_by_fd(fd, data)
    fields = BPF_MAP_INFO.unpack(bytes(data[:known]))
    name = fields.get("name", b"")
    assert isinstance(name, bytes)

    def number(field: str) -> int:
        return int(fields.get(field, 0))

    return MapInfo(
        number("type"),
        number("id"),
        name.partition(b"\0")[0].decode(errors="replace"),
        number("key_size"),
        number("value_size"),
        number("max_entries"),
        number("map_flags"),
        number("btf_id"),
        number("btf_key_type_id"),
        number("btf_value_type_id"),
        number("map_extra"),
    )
