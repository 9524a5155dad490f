"""The targets of pointers."""

from __future__ import annotations

from purebpf.btf.types.kinds import FuncProto, Ptr
from purebpf.btf.types.parse import Btf

__all__ = ["is_function_pointer"]


def is_function_pointer(btf: Btf, type_id: int) -> bool:
    """Return True if a type, through typedefs and qualifiers, points to a function."""
    pointer = btf.type(btf.resolve(type_id))
    if not isinstance(pointer, Ptr):
        return False
    return isinstance(btf.type(btf.resolve(pointer.type_id)), FuncProto)
