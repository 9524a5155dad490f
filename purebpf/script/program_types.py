"""Types of programs for scripts: parameters of a probed function, and structs of its source file.

They come from DWARF, as `purebpf.dataflow` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from purebpf.dataflow import types as dwarf
from purebpf.script.host import Host, ProgramTypes
from purebpf.script.point import Point
from purebpf.script.tracepoint_fields import RecordField
from purebpf.script.types import BOOL, VOID, Member, Type, integer, pointer, string

__all__ = ["find_parameters", "program_type", "program_types", "spell_parameter"]

_TAGS: Mapping[str, str] = {
    "struct": "DW_TAG_structure_type", "union": "DW_TAG_union_type", "class": "DW_TAG_class_type",
    "": "DW_TAG_typedef",
}  # fmt: skip
"""DWARF's names of the kinds of types, by the word before the name."""
_BOOLEAN, _FLOAT = 2, 4
_SIGNED = (5, 6, 13)
_CHARS = (6, 8)
"""DW_ATE_*: DWARF 5, table 7.11."""
_WORD = 8


def program_types(point: Point, host: Host) -> ProgramTypes | None:
    """Return the types of the program of an attach point; None if there are none."""
    if point.kind not in ("uprobe", "uretprobe"):
        return None
    path, _, function = point.target.rpartition(":")
    return host.program_types(path, function)


def program_type(point: Point, host: Host, name: str) -> Type | None:
    """Find a type of the program of an attach point, such as `struct request`."""
    word, _, rest = name.rpartition(" ")
    tag = _TAGS.get(word)
    types = program_types(point, host) if tag is not None else None
    found = types.named(tag or "", rest) if types is not None else None
    return None if found is None else _convert(found)


def find_parameters(
    types: ProgramTypes, point: Point, registers: Sequence[int]
) -> dict[str, RecordField]:
    """Return the parameters that are in registers when the function begins.

    Args:
        types: of the program.
        point: where the function begins.
        registers: the places of the registers of arguments in the context, in order.

    Numbers with a fraction have registers of their own. Parameters behind a struct that is passed
    by its value are left out: how many registers that takes depends on its members.
    """
    fields: dict[str, RecordField] = {}
    places = iter(registers)
    for name, type_ in types.parameters():
        made = _convert(type_).in_space(point.space)
        if made.kind == "none":
            continue
        place = next(places, None)
        if place is None or not made.is_scalar:
            break
        fields[name] = RecordField(place, made)
    return fields


def _convert(of: dwarf.Type | None) -> Type:
    """Return a type of a program as a script has it; "none" for numbers with a fraction."""
    bare = dwarf.bare(of)
    if bare is None:
        return VOID
    match bare.kind:
        case dwarf.Kind.POINTER:
            target = bare.target
            return pointer(_spell(target), partial(_convert, target), "user")
        case dwarf.Kind.STRUCT | dwarf.Kind.UNION:
            return Type("struct", bare.size, name=_spell(bare), layout=_ProgramLayout(bare))
        case dwarf.Kind.ARRAY:
            element, count = _convert(bare.target), bare.count
            if element.name == "char":
                return string(count)
            return Type("array", count * element.size, count=count, items=(element,))
        case dwarf.Kind.SCALAR:
            return _number(bare)
    return VOID


def _number(of: dwarf.Type) -> Type:
    if of.encoding == _BOOLEAN:
        return BOOL
    if of.encoding == _FLOAT or of.size not in (1, 2, 4, _WORD):
        return Type("none", of.size, name=of.name)
    is_char = of.size == 1 and of.encoding in _CHARS and of.name == "char"
    return integer(of.size, of.encoding in _SIGNED, "char" if is_char else "")


class _ProgramLayout:
    """The members of a struct or union of a program."""

    def __init__(self, of: dwarf.Type) -> None:
        self._of = of

    def member(self, name: str) -> Member | None:
        """Return a member by name, also from members without a name."""
        for item in self._of.members:
            if item.name == name:
                return _member(item)
        for item in self._of.members:
            inner = dwarf.bare(item.type)
            if (
                item.name
                or inner is None
                or inner.kind not in (dwarf.Kind.STRUCT, dwarf.Kind.UNION)
            ):
                continue
            found = _ProgramLayout(inner).member(name)
            if found is not None:
                return Member(item.offset + found.offset, found.type, found.bit, found.bits)
        return None

    def members(self) -> Sequence[tuple[str, Member]]:
        """Return the names and the members."""
        return [(item.name, _member(item)) for item in self._of.members]


def _member(item: dwarf.Member) -> Member:
    if item.bits and item.bit is None:
        return Member(item.offset, Type("none", dwarf.byte_size(item.type), name=item.name))
    return Member(item.offset, _convert(item.type), item.bit or 0, item.bits)


def _spell(of: dwarf.Type | None) -> str:
    """Return the name of a type as C has it, without qualifiers."""
    bare = dwarf.bare(of)
    if bare is None:
        return "void"
    if bare.kind is dwarf.Kind.POINTER:
        return f"{_spell(bare.target)} *"
    word = {dwarf.Kind.STRUCT: "struct ", dwarf.Kind.UNION: "union "}.get(bare.kind, "")
    return f"{word}{bare.name}" if bare.name else "void"


def spell_parameter(name: str, of: dwarf.Type | None) -> str:
    """Return a parameter as a line of C, such as `const char* name`."""
    return f"{_spell_declared(of)} {name}"


def _spell_declared(of: dwarf.Type | None) -> str:
    if of is None:
        return "void"
    if of.kind is dwarf.Kind.POINTER:
        return f"{_spell_declared(of.target)}*"
    if of.qualifier:
        target = dwarf.bare(of.target)
        is_pointer = target is not None and target.kind is dwarf.Kind.POINTER
        words = (_spell_declared(of.target), of.qualifier)
        return " ".join(words if is_pointer else reversed(words))
    if of.kind is dwarf.Kind.ARRAY:
        return f"{_spell_declared(of.target)}[{of.count}]"
    word = {dwarf.Kind.STRUCT: "struct ", dwarf.Kind.UNION: "union "}.get(of.kind, "")
    return f"{word}{of.name}"
