"""BTF from types, for `purebpf.btf.types.parse` to read.

Source: https://docs.kernel.org/bpf/btf.html.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from purebpf.btf.types import kinds as types
from purebpf.errors import SchemaError

__all__ = ["write_btf"]

_MAGIC, _HEADER_SIZE = 0xEB9F, 24
_SIGNED, _CHAR, _BOOL = 1, 2, 4


def write_btf(made: Iterable[types.Type], order: str = "<") -> bytes:
    """Return BTF without a base.

    Args:
        made: those from id 1 on; they refer to each other by ids.
        order: "<" or ">".

    Raises:
        SchemaError: a type that BTF cannot hold, or of a kind that is newer than this.
    """
    strings = _Strings()
    try:
        body = b"".join(_record(one, strings, order) for one in made)
    except struct.error as error:
        raise SchemaError(f"a type does not fit into BTF: {error}") from None
    head = struct.pack(
        f"{order}HBBI4I", _MAGIC, 1, 0, _HEADER_SIZE, 0, len(body), len(body), len(strings.data)
    )
    return head + body + bytes(strings.data)


class _Strings:
    """The section of names, each once."""

    def __init__(self) -> None:
        self.data = bytearray(1)
        self._places = {"": 0}

    def add(self, name: str) -> int:
        """Return the place of a name."""
        at = self._places.get(name)
        if at is None:
            at = self._places[name] = len(self.data)
            self.data += name.encode("utf-8", "surrogateescape") + b"\0"
        return at


def _record(one: types.Type, strings: _Strings, order: str) -> bytes:
    flag, size_or_type, count, words = _parts(one, strings)
    info = bool(flag) << 31 | one.kind << 24 | count
    packed = [struct.pack(f"{order}{'i' if word < 0 else 'I'}", word) for word in words]
    return struct.pack(f"{order}3I", strings.add(one.name), info, size_or_type) + b"".join(packed)


def _parts(one: types.Type, strings: _Strings) -> tuple[bool, int, int, list[int]]:  # noqa: PLR0911
    """Return the flag of a type, its size or the type it refers to, its count, and its remaining
    words.
    """
    match one:
        case types.Int():
            encoding = _SIGNED * one.signed | _CHAR * one.is_char | _BOOL * one.is_bool
            return False, one.size, 0, [encoding << 24 | one.offset << 16 | one.bits]
        case types.Array():
            return False, 0, 0, [one.element, one.index, one.count]
        case types.Struct() | types.Union():
            has_bits = any(member.bit_size for member in one.members)
            words = []
            for member in one.members:
                place = member.bit_size << 24 | member.bit_offset
                words += [strings.add(member.name), member.type_id, place]
            return has_bits, one.size, len(one.members), words
        case types.Enum():
            words = [word for name, value in one.values for word in (strings.add(name), value)]
            return one.signed, one.size, len(one.values), words
        case types.Enum64():
            words = []
            for name, value in one.values:
                words += [strings.add(name), value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF]
            return one.signed, one.size, len(one.values), words
        case types.Fwd():
            return one.is_union, 0, 0, []
        case types.Func():
            return False, one.type_id, one.linkage, []
        case types.FuncProto():
            words = [word for name, to in one.params for word in (strings.add(name), to)]
            return False, one.return_type, len(one.params), words
        case types.Var():
            return False, one.type_id, 0, [one.linkage]
        case types.Datasec():
            words = [word for entry in one.entries for word in entry]
            return False, one.size, len(one.entries), words
        case types.Float():
            return False, one.size, 0, []
        case types.DeclTag():
            return False, one.type_id, 0, [one.component]
        case types.Void():
            raise SchemaError("BTF has no type of that kind")
        case _:
            return False, one.type_id, 0, []
