"""The 20 kinds of BTF type as plain values (Documentation/bpf/btf.rst).

Every type is a small immutable tuple with at least `kind` and `name`; ids of other types are
integers into the same `Btf`. Id 0 is `void`. `kind` is the last field, always with its default:
it keeps a pointer from being equal to a `const` of the same type, and narrows for mypy.
"""

from __future__ import annotations

from typing import Literal

from purebpf.enums import IntEnum
from purebpf.tuples import NamedTuple


class Kind(IntEnum):
    """BTF_KIND_*, as in include/uapi/linux/btf.h."""

    VOID = 0
    INT = 1
    PTR = 2
    ARRAY = 3
    STRUCT = 4
    UNION = 5
    ENUM = 6
    FWD = 7
    TYPEDEF = 8
    VOLATILE = 9
    CONST = 10
    RESTRICT = 11
    FUNC = 12
    FUNC_PROTO = 13
    VAR = 14
    DATASEC = 15
    FLOAT = 16
    DECL_TAG = 17
    TYPE_TAG = 18
    ENUM64 = 19


class Linkage(IntEnum):
    """BTF_FUNC_* and BTF_VAR_*: functions use 0 to 2, variables 0 to 2 with the same meaning."""

    STATIC = 0
    GLOBAL = 1
    EXTERN = 2


class Void(NamedTuple):
    """Type id 0; or a type of a kind that is newer than this reader, which cannot describe it."""

    name: str = "void"
    kind: Literal[Kind.VOID] = Kind.VOID


class Int(NamedTuple):
    """An integer: `size` bytes of storage, `bits` used of it from bit `offset` (old encodings)."""

    name: str
    size: int
    bits: int
    offset: int
    signed: bool
    is_char: bool
    is_bool: bool
    kind: Literal[Kind.INT] = Kind.INT


class Ptr(NamedTuple):
    """A pointer."""

    type_id: int
    name: str = ""
    kind: Literal[Kind.PTR] = Kind.PTR


class Array(NamedTuple):
    """`count` elements of `element`."""

    element: int
    index: int  # type: ignore[assignment]  # over tuple.index
    count: int  # type: ignore[assignment]  # over tuple.count
    name: str = ""
    kind: Literal[Kind.ARRAY] = Kind.ARRAY


class Member(NamedTuple):
    """A member: its offset in bits, and its width in bits when it is a bit field (else 0)."""

    name: str
    type_id: int
    bit_offset: int
    bit_size: int


class Struct(NamedTuple):
    """A struct of `size` bytes."""

    name: str
    size: int
    members: tuple[Member, ...]
    kind: Literal[Kind.STRUCT] = Kind.STRUCT


class Union(NamedTuple):
    """A union of `size` bytes."""

    name: str
    size: int
    members: tuple[Member, ...]
    kind: Literal[Kind.UNION] = Kind.UNION


class Enumerator(NamedTuple):
    """One name of an enum."""

    name: str
    value: int


class Enum(NamedTuple):
    """An enum of 32-bit values."""

    name: str
    size: int
    signed: bool
    values: tuple[Enumerator, ...]
    kind: Literal[Kind.ENUM] = Kind.ENUM


class Enum64(NamedTuple):
    """An enum of 64-bit values."""

    name: str
    size: int
    signed: bool
    values: tuple[Enumerator, ...]
    kind: Literal[Kind.ENUM64] = Kind.ENUM64


class Fwd(NamedTuple):
    """A forward declaration of a struct or union."""

    name: str
    is_union: bool
    kind: Literal[Kind.FWD] = Kind.FWD


class Typedef(NamedTuple):
    """A typedef."""

    name: str
    type_id: int
    kind: Literal[Kind.TYPEDEF] = Kind.TYPEDEF


class Volatile(NamedTuple):
    """`volatile T`."""

    type_id: int
    name: str = ""
    kind: Literal[Kind.VOLATILE] = Kind.VOLATILE


class Const(NamedTuple):
    """`const T`."""

    type_id: int
    name: str = ""
    kind: Literal[Kind.CONST] = Kind.CONST


class Restrict(NamedTuple):
    """`T *restrict`."""

    type_id: int
    name: str = ""
    kind: Literal[Kind.RESTRICT] = Kind.RESTRICT


class Func(NamedTuple):
    """A function; `type_id` is its prototype."""

    name: str
    type_id: int
    linkage: Linkage
    kind: Literal[Kind.FUNC] = Kind.FUNC


class Param(NamedTuple):
    """A parameter; a variadic tail is `Param("", 0)`."""

    name: str
    type_id: int


class FuncProto(NamedTuple):
    """A function prototype."""

    return_type: int
    params: tuple[Param, ...]
    name: str = ""
    kind: Literal[Kind.FUNC_PROTO] = Kind.FUNC_PROTO


class Var(NamedTuple):
    """A global variable."""

    name: str
    type_id: int
    linkage: Linkage
    kind: Literal[Kind.VAR] = Kind.VAR


class DatasecEntry(NamedTuple):
    """A variable's place in its section, in bytes."""

    type_id: int
    offset: int
    size: int


class Datasec(NamedTuple):
    """A section of variables."""

    name: str
    size: int
    entries: tuple[DatasecEntry, ...]
    kind: Literal[Kind.DATASEC] = Kind.DATASEC


class Float(NamedTuple):
    """A floating point number."""

    name: str
    size: int
    kind: Literal[Kind.FLOAT] = Kind.FLOAT


class DeclTag(NamedTuple):
    """`btf_decl_tag(name)` on a declaration, or on its member or parameter `component`, else -1."""

    name: str
    type_id: int
    component: int
    kind: Literal[Kind.DECL_TAG] = Kind.DECL_TAG


class TypeTag(NamedTuple):
    """`btf_type_tag(name)` on a pointee."""

    name: str
    type_id: int
    kind: Literal[Kind.TYPE_TAG] = Kind.TYPE_TAG


Type = (
    Void
    | Int
    | Ptr
    | Array
    | Struct
    | Union
    | Enum
    | Enum64
    | Fwd
    | Typedef
    | Volatile
    | Const
    | Restrict
    | Func
    | FuncProto
    | Var
    | Datasec
    | Float
    | DeclTag
    | TypeTag
)

MODIFIERS = frozenset({Kind.TYPEDEF, Kind.VOLATILE, Kind.CONST, Kind.RESTRICT, Kind.TYPE_TAG})
"""Kinds that only qualify the type they point at."""
