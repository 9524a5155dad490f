"""Data sections with a longer or shorter array at their end: the types that say so.

As libbpf's bpf_map__set_value_size() does: the last variable of the section becomes one of a new
array type, which is added at the end, so that no other type id changes.
"""

from __future__ import annotations

import struct

from purebpf.btf.types.kinds import Array, Datasec, Kind, Var
from purebpf.btf.types.parse import Btf, starts, with_pointer_size, with_starts
from purebpf.errors import SchemaError
from purebpf.tuples import NamedTuple

__all__ = ["ArrayAtEnd", "find_array_at_end", "with_array_at_end"]

_HEADER = "HBBIIIII"
_HEADER_SIZE = 24
_MAGIC = 0xEB9F
_MOST = 1 << 31
_WORD = 4


class ArrayAtEnd(NamedTuple):
    """The array that a data section ends with.

    Attributes:
        name: the variable.
        offset: its first byte, in the section.
        element_size: bytes of an element.
        variable_id: the type id of the variable.
    """

    name: str
    offset: int
    element_size: int
    variable_id: int


def find_array_at_end(btf: Btf, type_id: int) -> ArrayAtEnd:
    """Return the last variable of a DATASEC, which must be an array.

    Raises:
        SchemaError: it is not; says which variable is last.
    """
    datasec = btf.type(type_id)
    assert isinstance(datasec, Datasec)
    if not datasec.entries:
        raise SchemaError("it has no variables")
    entry = max(datasec.entries, key=lambda entry: entry.offset)
    variable = btf.type(entry.type_id)
    assert isinstance(variable, Var)
    array = btf.type(btf.resolve(variable.type_id))
    if not isinstance(array, Array):
        raise SchemaError(f"its last variable, {variable.name}, is not an array")
    element_size = btf.sizeof(array.element)
    if not element_size:
        raise SchemaError(f"the elements of its last variable, {variable.name}, have no bytes")
    return ArrayAtEnd(variable.name, entry.offset, element_size, entry.type_id)


def with_array_at_end(btf: Btf, type_id: int, count: int) -> tuple[Btf, int]:
    """Return types in which the last variable of a DATASEC has `count` elements, and its type id.

    Raises:
        SchemaError: the section does not end with an array; or a count is below 1, or needs 2 GiB
            or more.
    """
    last = find_array_at_end(btf, type_id)
    size = count * last.element_size
    if not count > 0 or last.offset + size >= _MOST:
        raise SchemaError(f"{last.name} cannot have {count} elements")
    variable = btf.type(last.variable_id)
    assert isinstance(variable, Var)
    array = btf.type(btf.resolve(variable.type_id))
    assert isinstance(array, Array)
    order = "<" if btf.byteorder == "little" else ">"
    _, _, _, length, type_at, type_size, string_at, string_size = struct.unpack_from(
        order + _HEADER, btf.data
    )
    words = list(struct.unpack_from(f"{order}{type_size // _WORD}I", btf.data, length + type_at))
    first = list(starts(btf))
    made = len(btf)
    first.append(len(words))
    words += [0, Kind.ARRAY << 24, 0, array.element, array.index, count]
    words[first[last.variable_id - 1] + 2] = made
    at = first[type_id - 1]
    words[at + 2] = last.offset + size
    for entry in range(at + 3, first[type_id] if type_id < made else len(words), 3):
        if words[entry] == last.variable_id:
            words[entry + 2] = size
    types = struct.pack(f"{order}{len(words)}I", *words)
    strings = btf.data[length + string_at :][:string_size]
    header = struct.pack(
        order + _HEADER, _MAGIC, 1, 0, _HEADER_SIZE, 0, len(types), len(types), len(strings)
    )
    resized = with_starts(header + types + strings, first, btf.source)
    return with_pointer_size(resized, btf.pointer_size), made
