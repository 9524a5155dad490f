"""Values to bytes and back, by BTF type.

    integers, pointers   int, of any size            char arrays            str
    bool                 bool (int above 1)          unsigned char arrays   bytes
    enums                a member of an IntEnum,     other arrays           tuple
                         or int when unnamed         structs                record, fields by name
    floats               float                       unions                 record of every member
    Rust's unit          ()                          C++ base classes       bytes, as `base`

Typedefs and qualifiers are transparent; anonymous members are part of their struct. A flexible
array at the end of a struct takes the rest of the buffer. When encoding, a struct may also be a
mapping or a sequence, a union's other members may be missing, and bytes of the right size are
accepted for anything. Padding is zero, except in keys that were read with other padding.
"""

from __future__ import annotations

from purebpf.btf.codec.values import (
    INTEGER_CODES,
    Boolean,
    Codec,
    Enumeration,
    FloatingPoint,
    Integer,
    KernelPointer,
    WideInteger,
)
from purebpf.btf.types import kinds
from purebpf.btf.types.kinds import MODIFIERS, Kind
from purebpf.btf.types.parse import MAX_DEPTH, Btf
from purebpf.btf.types.spelling import spell
from purebpf.errors import FormatError

__all__ = ["Codec", "codec", "variable_codec"]

_TAGGED = frozenset({Kind.STRUCT, Kind.UNION, Kind.ENUM, Kind.ENUM64})

_KPTRS = frozenset({"kptr", "kptr_untrusted", "percpu_kptr"})
"""Tags of pointers that the kernel keeps: btf_get_field_type (kernel/bpf/btf.c)."""

_VALUES_PER_BYTE = 64
"""Most values that one byte may be decoded to; unions of unions double with every level."""


def codec(btf: Btf, type_id: int, *, key: bool = False, text: bool = True) -> Codec:
    """The codec of a type, made once for each Btf.

    Args:
        btf: the types.
        type_id: the type, or a variable, for its type.
        key: for map keys, which must encode to the very bytes that were decoded: strings keep the
            bytes behind a NUL, and records keep padding that is not zero
            (`purebpf.btf.codec.padding`).
        text: False for char arrays as bytes, with all that follows a NUL.

    FormatError when the type has no size, or is malformed.
    """
    return _Builder(btf, key=key, text=text).build(type_id)


def variable_codec(btf: Btf, type_id: int, name: str) -> Codec:
    """The codec of a variable's type; a type without a name has the variable's.

    FormatError when the type has no size, or is malformed.
    """
    return _Builder(btf, key=False, text=True).build(type_id, name)


class _Builder:
    """Makes the codec of a type and of the types in it: `compounds.Builder`."""

    def __init__(self, btf: Btf, *, key: bool, text: bool) -> None:
        self.btf = btf
        self.key = key
        self.text = text
        self.order = "<" if btf.byteorder == "little" else ">"
        self.depth = 0
        self.members = 0

    def build(self, type_id: int, hint: str = "") -> Codec:
        """The codec; `hint` names the record class of a type without name."""
        type_id = self._canonical(type_id)
        memo = ("codec", type_id, self.key, self.text)
        built: Codec | None = self.btf.memo.get(memo)
        if built is None:
            if self.depth == MAX_DEPTH:
                raise self.error(type_id, f"contains itself, or types {MAX_DEPTH} levels deep")
            self.depth += 1
            built = self._make(type_id, self.btf.name(type_id) or hint)
            self.depth -= 1
            if built.weight > _VALUES_PER_BYTE * (built.size + 64):
                problem = f"is {built.weight} values in {built.size} bytes"
                raise self.error(type_id, problem)
            self.btf.memo[memo] = built
        return built

    def _canonical(self, type_id: int) -> int:
        """Return the type to make one codec of: a struct or enum by its name, else the first
        typedef.
        """
        resolved = self.btf.resolve(type_id)
        if self.btf.kind(resolved) in _TAGGED and self.btf.name(resolved):
            return resolved
        while (kind := self.btf.kind(type_id)) in MODIFIERS and kind is not Kind.TYPEDEF:
            type_id = self.btf.type(type_id).type_id  # type: ignore[union-attr]
        return type_id

    def error(self, type_id: int, problem: str) -> FormatError:
        """Return an error about a type."""
        where = f"type {type_id} ({spell(self.btf, type_id)})"
        return FormatError(self.btf.source, where, problem)

    def _make(self, type_id: int, name: str) -> Codec:
        btf_type = self.btf.type(self.btf.resolve(type_id))
        c_type = spell(self.btf, type_id)
        match btf_type:
            case kinds.Int():
                return self._integer(c_type, btf_type)
            case kinds.Ptr():
                kind = KernelPointer if self._is_kptr(btf_type.type_id) else Integer
                return kind(c_type, self.btf.pointer_size, self.order, signed=False)
            case kinds.Enum() | kinds.Enum64():
                values = {enumerator.name: enumerator.value for enumerator in btf_type.values}
                return Enumeration(
                    c_type, btf_type.size, self.order, signed=btf_type.signed, values=values
                )
            case kinds.Float():
                if btf_type.size in (2, 4, 8):
                    return FloatingPoint(c_type, btf_type.size, self.order)
                from purebpf.btf.codec.arrays import Octets

                return Octets(c_type, btf_type.size, self.order)
            case kinds.Array():
                from purebpf.btf.codec.compounds import array_codec  # a start needs numbers only

                return array_codec(self, type_id, c_type, btf_type, name)
            case kinds.Struct() | kinds.Union() | kinds.Datasec():
                from purebpf.btf.codec.compounds import struct_codec

                return struct_codec(self, type_id, c_type, btf_type, name)
            case kinds.Var():
                return self.build(btf_type.type_id, name)
            case _:
                raise self.error(type_id, "has no size")

    def _is_kptr(self, type_id: int) -> bool:
        target = self.btf.type(type_id) if type_id else None
        return isinstance(target, kinds.TypeTag) and target.name in _KPTRS

    def _integer(self, c_type: str, integer: kinds.Int) -> Codec:
        if not integer.size:
            from purebpf.btf.codec.arrays import Array

            return Array(c_type, Codec(c_type, 0, "0s", self.order), 0, self.order)
        if integer.size not in INTEGER_CODES:
            return WideInteger(c_type, integer.size, self.order, signed=integer.signed)
        if integer.is_bool:
            return Boolean(c_type, integer.size, self.order)
        return Integer(c_type, integer.size, self.order, signed=integer.signed)
