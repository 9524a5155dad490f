"""Numbers of the kernel's enums as names, and names as the kernel accepts them for objects."""

from __future__ import annotations

from typing import TypeVar

from purebpf.enums import IntEnum

__all__ = ["FIT_FOR_OBJECT_NAME", "OBJECT_NAME_LENGTH", "member", "member_name"]

OBJECT_NAME_LENGTH = 15
"""BPF_OBJ_NAME_LEN less the NUL."""

FIT_FOR_OBJECT_NAME = bytes(
    byte if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "_.") else ord("_")
    for byte in range(256)
)
"""`name.translate(...)`: what bpf_obj_name_cpy() in kernel/bpf/syscall.c refuses becomes `_`."""

_Enum = TypeVar("_Enum", bound=IntEnum)


def member(names: type[_Enum], number: int) -> _Enum | int:
    """The member of the enum, or the number when it is newer than our tables."""
    return names(number) if number in names._value2member_map_ else number


def member_name(
    names: type[IntEnum], number: int, *, prefix: str = "", unknown: str = "type"
) -> str:
    """`"BPF_MAP_TYPE_HASH"` of 1 without the prefix; `"type 99"` when our tables do not have it."""
    constant = member(names, number)
    if isinstance(constant, names):
        return constant.name.removeprefix(prefix)
    return f"{unknown} {number}" if unknown else str(number)
