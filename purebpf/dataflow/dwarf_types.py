"""Types from DWARF debugging entries (DWARF 5, chapters 5.1 to 5.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.dataflow.types import Kind, Member, Type, byte_size

if TYPE_CHECKING:
    from purebpf.dataflow.entries import Entry

__all__ = ["NoDebugInfoError", "TypeReader", "name_of_entry", "origin"]

_KINDS = {
    "DW_TAG_pointer_type": Kind.POINTER,
    "DW_TAG_reference_type": Kind.POINTER,
    "DW_TAG_rvalue_reference_type": Kind.POINTER,
    "DW_TAG_structure_type": Kind.STRUCT,
    "DW_TAG_class_type": Kind.STRUCT,
    "DW_TAG_union_type": Kind.UNION,
    "DW_TAG_array_type": Kind.ARRAY,
    "DW_TAG_typedef": Kind.ALIAS,
    "DW_TAG_const_type": Kind.ALIAS,
    "DW_TAG_volatile_type": Kind.ALIAS,
    "DW_TAG_restrict_type": Kind.ALIAS,
    "DW_TAG_atomic_type": Kind.ALIAS,
    "DW_TAG_subroutine_type": Kind.FUNCTION,
}
_QUALIFIERS = {"DW_TAG_const_type": "const", "DW_TAG_volatile_type": "volatile",
               "DW_TAG_restrict_type": "restrict", "DW_TAG_atomic_type": "_Atomic"}  # fmt: skip
_MEMBERS = ("DW_TAG_member", "DW_TAG_inheritance")
_SCOPES = ("DW_TAG_namespace", "DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type")
_ORIGINS = ("DW_AT_abstract_origin", "DW_AT_specification")
_DEEPEST = 16


class NoDebugInfoError(ValueError):
    """A file or unit without types; the message says why."""


def origin(entry: Entry) -> Entry:
    """Return the entry that an inlined or split one repeats: it has the name and the type."""
    for _ in range(_DEEPEST):
        link = next((name for name in _ORIGINS if entry.has(name)), None)
        if link is None or entry.has("DW_AT_type"):
            break
        entry = entry.follow(link)
    return entry


def name_of_entry(entry: Entry) -> str:
    """Return the name of an entry, or of the one that it repeats; "" without one."""
    for _ in range(_DEEPEST):
        attribute = entry.get("DW_AT_name")
        if attribute is not None:
            return bytes(attribute.value).decode("utf-8", "replace")
        link = next((name for name in _ORIGINS if entry.has(name)), None)
        if link is None:
            break
        entry = entry.follow(link)
    return ""


class TypeReader:
    """Types by their entries, each read once."""

    def __init__(self) -> None:
        self._types: dict[Entry, Type] = {}

    def type_of(self, entry: Entry) -> Type | None:
        """Return the type that an entry's DW_AT_type names; None for void."""
        if not entry.has("DW_AT_type"):
            return None
        return self.read(entry.follow("DW_AT_type"))

    def read(self, entry: Entry) -> Type:
        """Return the type that an entry describes."""
        known = self._types.get(entry)
        if known is not None:
            return known
        if entry.has("DW_AT_signature"):  # declared here, described in a unit of its own
            self._types[entry] = described = self.read(entry.follow("DW_AT_signature"))
            return described
        kind = _KINDS.get(str(entry.tag), Kind.SCALAR)
        name = _qualified(entry) if kind is not Kind.ARRAY else ""
        made = Type(
            kind, name, _number(entry, "DW_AT_byte_size"), lambda made: self._fill(made, entry)
        )
        made.qualifier = _QUALIFIERS.get(str(entry.tag), "")
        made.encoding = _number(entry, "DW_AT_encoding")
        made.is_complete = not entry.has("DW_AT_declaration")
        self._types[entry] = made
        return made

    def _fill(self, made: Type, entry: Entry) -> None:
        if made.kind in (Kind.POINTER, Kind.ALIAS, Kind.FUNCTION):
            made.target = self.type_of(entry)
        elif made.kind is Kind.ARRAY:
            made.target = self.type_of(entry)
            made.count = _elements(entry)
        elif made.kind in (Kind.STRUCT, Kind.UNION):
            made.members = tuple(self._members(entry))

    def _members(self, entry: Entry) -> list[Member]:
        members = []
        for child in entry.iter_children():
            if child.tag not in _MEMBERS or child.has("DW_AT_external"):
                continue
            kind = self.type_of(child)
            offset = _member_offset(child, byte_size(kind))
            if offset is not None:  # else a virtual base: its place is known at run time
                bits = _number(child, "DW_AT_bit_size")
                bit = _first_bit(child, offset, bits, byte_size(kind))
                members.append(Member(name_of_entry(child), offset, kind, bits, bit))
        return sorted(members, key=lambda member: member.offset)


def _member_offset(child: Entry, size: int) -> int | None:
    bit = child.get("DW_AT_data_bit_offset")
    if bit is not None:
        return int(bit.value) // 8 // max(size, 1) * max(size, 1)  # the unit that compilers load
    attribute = child.get("DW_AT_data_member_location")
    if attribute is None:
        return 0
    return attribute.value if isinstance(attribute.value, int) else None


def _first_bit(child: Entry, offset: int, bits: int, size: int) -> int | None:
    """Return the lowest bit of a bit field in its unit; None if it is not known."""
    place = child.get("DW_AT_data_bit_offset")
    if place is not None:
        return int(place.value) - 8 * offset
    old = child.get("DW_AT_bit_offset")  # DWARF 3: from the highest bit of the unit
    return None if old is None else 8 * size - int(old.value) - bits


def _elements(entry: Entry) -> int:
    """Return the number of elements, over all dimensions; 0: not known."""
    count = 1
    for child in entry.iter_children():
        if child.tag != "DW_TAG_subrange_type":
            continue
        bound, length = (child.get(f"DW_AT_{n}") for n in ("upper_bound", "count"))
        if bound is not None and isinstance(bound.value, int):
            count *= bound.value + 1 if bound.value < 1 << 62 else 0
        elif length is not None and isinstance(length.value, int):
            count *= length.value
        else:
            count = 0
    return count


def _qualified(entry: Entry) -> str:
    """Return the name with the namespaces and classes around it."""
    name = name_of_entry(entry)
    if not name or entry.tag == "DW_TAG_base_type":
        return name
    parent = entry.get_parent()
    for _ in range(_DEEPEST):
        if parent is None or parent.tag not in _SCOPES:
            break
        name = f"{name_of_entry(parent) or '(anonymous)'}::{name}"
        parent = parent.get_parent()
    return name


def _number(entry: Entry, name: str) -> int:
    attribute = entry.get(name)
    return attribute.value if attribute is not None and isinstance(attribute.value, int) else 0
