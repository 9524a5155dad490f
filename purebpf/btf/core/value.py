"""The number that a CO-RE relocation needs, once its path is resolved.

It is computed twice: over the local types, as the compiler did, to check the instruction, and
over each candidate of the target. Bit fields are read by a load of `BYTE_SIZE` bytes at
`BYTE_OFFSET`, shifted left, then right, inside a 64-bit register.
"""

from __future__ import annotations

from purebpf.abi.bpf import bpf_core_relo_kind
from purebpf.btf.core.access import ENUM_KINDS, FIELD_KINDS, Access
from purebpf.btf.types.kinds import Array, Enum, Enum64, Int, Member, Ptr
from purebpf.btf.types.parse import Btf
from purebpf.btf.types.struct_members import read_member
from purebpf.errors import CoreRelocationError, FormatError
from purebpf.tuples import NamedTuple

_REGISTER_BITS = 64
_REGISTER_SIZE = 8


class Value(NamedTuple):
    """The number; may be negative (an enumerator).

    `checkable`: the instruction must hold the local number (compilers may choose another load for
    a bit field). `size` and `type_id` describe the field of a BYTE_OFFSET: a load of it has to
    be as wide; 0 when its width is open.
    """

    number: int
    checkable: bool = True
    size: int = 0
    type_id: int = 0


class _Storage(NamedTuple):
    """The bytes to load for a field, and its bits within them (counted from the root's start)."""

    offset: int
    size: int
    bit_offset: int
    bit_size: int


def evaluate(access: Access) -> Value:
    """The value that `access.kind` asks for at the end of the path.

    Raises:
        CoreRelocationError: a bit field that no 64-bit load can reach.
        FormatError: a kind that is unknown, or has no meaning for this path or type.
    """
    if access.kind in FIELD_KINDS:
        return _field(access)
    if access.kind in ENUM_KINDS:
        return _enumerator(access)
    match access.kind:
        case bpf_core_relo_kind.BPF_CORE_TYPE_EXISTS | bpf_core_relo_kind.BPF_CORE_TYPE_MATCHES:
            return Value(1)
        case bpf_core_relo_kind.BPF_CORE_TYPE_SIZE:
            return Value(access.btf.sizeof(access.root))
        case bpf_core_relo_kind.BPF_CORE_TYPE_ID_LOCAL | bpf_core_relo_kind.BPF_CORE_TYPE_ID_TARGET:
            # A linker renumbers types without touching instructions.
            return Value(access.root, checkable=False)
        case _:
            raise _meaningless(access)


def is_resizable(local: Btf, local_id: int, target: Btf, target_id: int) -> bool:
    """Return True if a load of one type may become a load of the other, of another width.

    Zero extension keeps the value of pointers and unsigned integers only.
    """
    match local.type(local_id), target.type(target_id):
        case Ptr(), Ptr():
            return True
        case Int(signed=False), Int(signed=False):
            return True
        case _:
            return False


def _meaningless(access: Access) -> FormatError:
    return FormatError(
        access.btf.source, f"CO-RE relocation of {access}", f"cannot answer kind {access.kind}"
    )


def _enumerator(access: Access) -> Value:
    if access.kind == bpf_core_relo_kind.BPF_CORE_ENUMVAL_EXISTS:
        return Value(1)
    step = access.steps[0]
    enum = access.btf.type(step.type_id)
    assert isinstance(enum, Enum | Enum64)
    return Value(enum.values[step.number].value)


def _field(access: Access) -> Value:
    if access.kind == bpf_core_relo_kind.BPF_CORE_FIELD_EXISTS:
        return Value(1)
    step = access.steps[-1]
    if step.name is None:
        return _element(access, step.type_id)
    return _member(access, read_member(access.btf, step.type_id, step.number))


def _element(access: Access, type_id: int) -> Value:
    """An array's element, or the root itself."""
    match access.kind:
        case bpf_core_relo_kind.BPF_CORE_FIELD_BYTE_OFFSET:
            return Value(access.bit_offset // 8, True, _load_size(access.btf, type_id), type_id)
        case bpf_core_relo_kind.BPF_CORE_FIELD_BYTE_SIZE:
            return Value(access.btf.sizeof(type_id))
        case _:
            raise _meaningless(access)


def _member(access: Access, member: Member) -> Value:
    btf = access.btf
    type_id = btf.resolve(member.type_id)
    is_bit_field = member.bit_size > 0
    storage = _storage(access, member, type_id)
    end = storage.bit_offset + storage.bit_size - 8 * storage.offset
    match access.kind:
        case bpf_core_relo_kind.BPF_CORE_FIELD_BYTE_OFFSET if is_bit_field:
            return Value(storage.offset, checkable=False)
        case bpf_core_relo_kind.BPF_CORE_FIELD_BYTE_OFFSET:
            return Value(storage.offset, True, _load_size(btf, type_id), type_id)
        case bpf_core_relo_kind.BPF_CORE_FIELD_BYTE_SIZE:
            return Value(storage.size, checkable=not is_bit_field)
        case bpf_core_relo_kind.BPF_CORE_FIELD_SIGNED:
            return Value(int(getattr(btf.type(type_id), "signed", False)))
        case bpf_core_relo_kind.BPF_CORE_FIELD_LSHIFT_U64:
            if btf.byteorder == "little":
                shift = _REGISTER_BITS - end
            else:
                unused = _REGISTER_SIZE - storage.size
                shift = 8 * unused + storage.bit_offset - 8 * storage.offset
            return Value(shift, checkable=not is_bit_field)
        case _:
            return Value(_REGISTER_BITS - storage.bit_size)


def _storage(access: Access, member: Member, type_id: int) -> _Storage:
    """The aligned load that holds the whole member, from its declared width up to 64 bits."""
    bits = access.bit_offset
    size = access.btf.sizeof(type_id)
    if not member.bit_size:
        return _Storage(bits // 8, size, bits, 8 * size)
    if size == 0:
        raise FormatError(access.btf.source, str(access), "a bit field of a type without a size")
    offset = bits // 8 // size * size
    while bits + member.bit_size > 8 * (offset + size):
        if size >= _REGISTER_SIZE:
            raise CoreRelocationError(f"{access}: no aligned 64-bit load holds the bit field")
        size *= 2
        offset = bits // 8 // size * size
    return _Storage(offset, size, bits, member.bit_size)


def _load_size(btf: Btf, type_id: int) -> int:
    """Return the size of one load of a field of this type: for an array, of an element."""
    current = btf.resolve(type_id)
    while isinstance(btf_type := btf.type(current), Array):
        current = btf.resolve(btf_type.element)
    return btf.sizeof(current)
