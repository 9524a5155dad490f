"""Where struct task_struct of this kernel has what tells programs apart."""

from __future__ import annotations

from typing import Any

from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf

__all__ = ["task_offsets"]

_FIELDS = ("start_time", "self_exec_id", "group_leader")
_BYTE = 8


def task_offsets(btf: Btf) -> dict[str, int]:
    """The bytes before each field of bpf_src/include/user_stacks.h, or none if one is not there.

    The fields may be in a struct without a name (CONFIG_RANDSTRUCT).
    """
    offsets: dict[str, int] = {}
    for type_id in btf.find("task_struct", Kind.STRUCT):
        _look(btf, type_id, 0, offsets)
    return offsets if len(offsets) == len(_FIELDS) else {}


def _look(btf: Btf, type_id: int, base: int, offsets: dict[str, int]) -> None:
    struct: Any = btf.type(type_id)
    for member in struct.members:
        at = base + member.bit_offset // _BYTE
        if member.name in _FIELDS:
            offsets[member.name] = at
        elif not member.name:
            inner = btf.resolve(member.type_id)
            if btf.kind(inner) in (Kind.STRUCT, Kind.UNION):
                _look(btf, inner, at, offsets)
