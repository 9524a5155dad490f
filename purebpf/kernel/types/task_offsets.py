"""Where struct task_struct of this kernel has what tells programs apart."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf

__all__ = ["fsbase_offset", "task_offsets"]

_FIELDS = ("start_time", "self_exec_id", "group_leader")
_BYTE = 8


def task_offsets(btf: Btf) -> dict[str, int]:
    """The bytes before each field of bpf_src/include/user_stacks.h, or none if one is not there.

    The fields may be in a struct without a name (CONFIG_RANDSTRUCT).
    """
    offsets: dict[str, int] = {}
    for type_id in btf.find("task_struct", Kind.STRUCT):
        _look(btf, type_id, _FIELDS, offsets)
    return offsets if len(offsets) == len(_FIELDS) else {}


def fsbase_offset(btf: Btf) -> int:
    """The bytes before thread.fsbase, the base of a thread's own storage; 0: it is not there."""
    total = 0
    for struct, field in (("task_struct", "thread"), ("thread_struct", "fsbase")):
        offsets: dict[str, int] = {}
        for type_id in btf.find(struct, Kind.STRUCT)[:1]:
            _look(btf, type_id, (field,), offsets)
        if not offsets:
            return 0
        total += offsets[field]
    return total


def _look(
    btf: Btf, type_id: int, names: Collection[str], offsets: dict[str, int], base: int = 0
) -> None:
    struct: Any = btf.type(type_id)
    for member in struct.members:
        at = base + member.bit_offset // _BYTE
        if member.name in names:
            offsets[member.name] = at
        elif not member.name:
            inner = btf.resolve(member.type_id)
            if btf.kind(inner) in (Kind.STRUCT, Kind.UNION):
                _look(btf, inner, names, offsets, at)
