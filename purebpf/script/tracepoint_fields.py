"""Fields of a tracepoint's record, read from its format file."""

from __future__ import annotations

import re

from purebpf.late_pattern import compile_later
from purebpf.script.types import BOOL, CHAR, Type, integer, pointer, string
from purebpf.script.world import World
from purebpf.tuples import NamedTuple

__all__ = ["RecordField", "read_fields"]

_FIELD = compile_later(
    r"^\tfield:(.+?);\toffset:(\d+);\tsize:(\d+);(?:\tsigned:([01]);)?", re.MULTILINE
)
_DECLARED = compile_later(r"(.*?)\s*(\w+)\s*(\[.*\])?")
_QUALIFIERS = compile_later(r"\b(?:const|volatile)\b")


class RecordField(NamedTuple):
    """A field `offset` bytes from the beginning of the context.

    Attributes:
        location: 0, the field itself is there; 1 or 2, there are the offset and the length of the
            data, which count from the record (1) or from behind the field (2).
    """

    offset: int
    type: Type
    location: int = 0


def read_fields(text: str, world: World, space: str, longest: int) -> dict[str, RecordField]:
    """Return the fields of a record by name; strings elsewhere have at most `longest` bytes."""
    fields: dict[str, RecordField] = {}
    for declared, offset, size, signed in _FIELD.findall(text):
        location = 0
        if declared.startswith(("__data_loc ", "__rel_data_loc ")):
            location = 2 if declared.startswith("__rel") else 1
            declared = declared.partition(" ")[2].replace("[]", "", 1)
        match = _DECLARED.fullmatch(declared)
        if match is None:
            continue
        kind = _QUALIFIERS.sub("", match[1]).strip()
        count = match[3] is not None
        if location:
            made = string(longest) if kind == "char" else _pointer_to(world, kind, "kernel")
        else:
            made = _plain(world, kind, int(size), signed == "1", is_array=count, space=space)
        fields[match[2]] = RecordField(int(offset), made, location)
    return fields


def _plain(
    world: World, kind: str, size: int, is_signed: bool, *, is_array: bool, space: str
) -> Type:
    if kind.endswith("*"):
        return _pointer_to(world, kind[:-1].strip(), space)
    if is_array:
        if kind == "char":
            return string(size)
        element = world.named(kind) or integer(1, False)
        width = max(1, element.size)
        return Type("array", size, count=size // width, items=(element,))
    if kind == "bool":
        return BOOL
    if size in (1, 2, 4, 8):
        return integer(size, is_signed, kind if kind.startswith("enum ") else "")
    return Type("struct", size, name=kind)


def _pointer_to(world: World, label: str, space: str) -> Type:
    def resolve() -> Type:
        if label.endswith("*"):
            return _pointer_to(world, label[:-1].strip(), space)
        if label == "char":
            return CHAR
        return world.named(label) or Type("void")

    return pointer(label, resolve, space)
