"""Debugging entries of DWARF units, each read as far as it is asked for.

pyelftools' `DIE` reads all values of every entry that it passes: 8 s for the functions that a busy
CPython runs. Here an entry that is passed costs the reading of its length, and its values are read
together when one is asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from elftools.common.exceptions import DWARFError
from elftools.dwarf.enums import ENUM_DW_AT, ENUM_DW_FORM, ENUM_DW_TAG

from purebpf.dataflow.locations import Tables, all_of, read_number, read_signed, string_at
from purebpf.dataflow.units import Unit, read_units
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from elftools.dwarf.dwarfinfo import DWARFInfo

__all__ = ["Entries", "Entry", "Section", "Value"]

_SIZES = {
    **dict.fromkeys(("addrx1", "block1", "data1", "flag", "ref1", "strx1"), 1),
    **dict.fromkeys(("addrx2", "block2", "data2", "ref2", "strx2"), 2),
    **dict.fromkeys(("addrx3", "strx3"), 3),
    **dict.fromkeys(("addrx4", "block4", "data4", "ref", "ref4", "ref_sup4", "strx4"), 4),
    **dict.fromkeys(("data8", "ref8", "ref_sig8", "ref_sup8"), 8),
    **dict.fromkeys(("flag_present", "implicit_const"), 0),
    "data16": 16,
}
"""Bytes of a value, or of the length before it, by its form; addresses and offsets depend."""
_OFFSETS = ("sec_offset", "strp", "line_strp", "strp_sup", "ref_addr", "GNU_strp_alt",
            "GNU_ref_alt")  # fmt: skip
_BLOCKS = ("block1", "block2", "block4")
_COUNTED = ("block", "exprloc")
_NUMBERS = ("sdata", "udata", "strx", "addrx", "ref_udata", "loclistx", "rnglistx")
_PLAIN = ("data1", "data2", "data4", "data8", "ref", "ref1", "ref2", "ref4", "ref8", "ref_addr",
          "sec_offset", "addr")  # fmt: skip
_OF_GNU = {"GNU_str_index": "strx", "GNU_addr_index": "addrx"}
_IMPLICIT = ENUM_DW_FORM["DW_FORM_implicit_const"]
_TAGS = {number: name for name, number in ENUM_DW_TAG.items() if isinstance(number, int)}
_ATTRIBUTES = {number: name for name, number in ENUM_DW_AT.items() if isinstance(number, int)}
_FORM_NAMES = {number: name for name, number in ENUM_DW_FORM.items() if isinstance(number, int)}
_OF_SHARED = ("GNU_ref_alt", "ref_sup4", "ref_sup8")
_IN_UNIT = ("ref", "ref1", "ref2", "ref4", "ref8", "ref_udata")
_BASES = ("DW_AT_addr_base", "DW_AT_str_offsets_base", "DW_AT_loclists_base",
          "DW_AT_rnglists_base")  # fmt: skip
_DEEPEST = 64


class Value(NamedTuple):
    """The value of an attribute, and its form without `DW_FORM_`."""

    form: str
    value: Any


class _Attribute(NamedTuple):
    """One attribute of an abbreviation.

    Attributes:
        form: without `DW_FORM_`.
        constant: the value, of the form implicit_const.
        plain: bytes of a value that is a number as it stands; 0: it is read by its form.
    """

    name: str
    form: str
    constant: int
    plain: int


class _Shape:
    """The tag and the attributes of the entries of one abbreviation.

    Attributes:
        size: in bytes, of all values; None: it differs.
        names: of the attributes.
        sibling: the place of the next sibling's offset within the values, and its bytes; None: an
            entry has no such offset, or it differs.
    """

    __slots__ = ("attributes", "has_children", "names", "sibling", "size", "tag")

    def __init__(
        self, tag: str, attributes: tuple[_Attribute, ...], *, has_children: bool,
        sizes: Mapping[str, int],
    ) -> None:  # fmt: skip
        self.tag, self.attributes, self.has_children = tag, attributes, has_children
        forms = [one.form for one in attributes]
        is_fixed = all(form in sizes and form not in _BLOCKS for form in forms)
        self.size = sum(sizes[form] for form in forms) if is_fixed else None
        self.names = frozenset(one.name for one in attributes)
        self.sibling: tuple[int, int] | None = None
        at = 0
        for one in attributes:
            if one.name == "DW_AT_sibling" and one.form in _IN_UNIT and one.plain:
                self.sibling = at, one.plain
            if one.form not in sizes or one.form in _BLOCKS:
                break
            at += sizes[one.form]


def _read_shapes(data: bytes, at: int, sizes: Mapping[str, int]) -> dict[int, _Shape]:
    """Return the abbreviations of a unit by their codes (DWARF 5, section 7.5.3).

    Raises:
        IndexError: the table is cut.
    """
    shapes: dict[int, _Shape] = {}
    while True:
        code, at = read_number(data, at)
        if not code:
            return shapes
        tag, at = read_number(data, at)
        has_children, at = data[at] != 0, at + 1
        attributes = []
        while True:
            name, at = read_number(data, at)
            form, at = read_number(data, at)
            constant = 0
            if form == _IMPLICIT:
                constant, at = read_signed(data, at)
            if not (name or form):
                break
            spelled = _FORM_NAMES.get(form, f"DW_FORM_{form:#x}").removeprefix("DW_FORM_")
            spelled = _OF_GNU.get(spelled, spelled)
            plain = sizes[spelled] if spelled in _PLAIN else 0
            attribute = _ATTRIBUTES.get(name, f"DW_AT_{name:#x}")
            attributes.append(_Attribute(attribute, spelled, constant, plain))
        shapes[code] = _Shape(
            _TAGS.get(tag, f"DW_TAG_{tag:#x}"),
            tuple(attributes),
            has_children=has_children,
            sizes=sizes,
        )


class Entry:
    """One entry: its tag, its attributes, and the entries below it.

    Attributes:
        offset: in .debug_info.
        end: the offset behind its values.
    """

    __slots__ = ("_children_end", "_parent", "_reader", "_shape", "_start", "_values", "end",
                 "offset")  # fmt: skip

    def __init__(self, reader: Entries, offset: int, start: int, shape: _Shape | None) -> None:
        self._reader, self.offset, self._start, self._shape = reader, offset, start, shape
        self._parent: Entry | None = None
        self._values: dict[str, Value] | None = None
        self._children_end = 0
        self.end = start if shape is None else reader.end_of(start, shape)

    @property
    def tag(self) -> str | None:
        """`DW_TAG_...`; None for the mark behind the last child."""
        return None if self._shape is None else self._shape.tag

    @property
    def attributes(self) -> dict[str, Value]:
        """The values by `DW_AT_...`."""
        if self._values is None:
            self._values = {} if self._shape is None else self._reader.read(self)
        return self._values

    def get(self, name: str) -> Value | None:
        """Return the value of an attribute; None: there is none, and none is read for that."""
        if self._shape is None or name not in self._shape.names:
            return None
        return self.attributes.get(name)

    def has(self, name: str) -> bool:
        """Return True if there is such an attribute."""
        return self._shape is not None and name in self._shape.names

    def iter_children(self) -> Iterator[Entry]:
        """Yield the entries directly below."""
        if self._shape is None or not self._shape.has_children:
            return
        offset = self.end
        while True:
            child = self._reader.at(offset)
            child._parent = self  # noqa: SLF001 - of the same class
            if child._shape is None:  # noqa: SLF001
                self._children_end = child.end
                return
            yield child
            offset = child._next()  # noqa: SLF001

    def _next(self) -> int:
        """Return the offset behind the entry and all below it."""
        if self._shape is None or not self._shape.has_children:
            return self.end
        place = 0
        if self._shape.sibling is not None:
            place = self._reader.number_at(self._start, *self._shape.sibling)
        elif "DW_AT_sibling" in self._shape.names:
            place = int(self.attributes["DW_AT_sibling"].value)
        if self._reader.unit.start + place > self.offset:
            return self._reader.unit.start + place
        if not self._children_end:
            for _ in self.iter_children():
                pass
        return self._children_end

    def get_parent(self) -> Entry | None:
        """Return the entry around this one; None for the unit's own."""
        if self._parent is None and self is not self._reader.top:
            self._reader.find_parents(self.offset)
        return self._parent

    def follow(self, name: str) -> Entry:
        """Return the entry that an attribute refers to.

        Raises:
            DWARFError, KeyError, IndexError: there is no such attribute or entry.
        """
        value = self.attributes[name]
        return self._reader.referred(value.form, value.value)

    @property
    def shape(self) -> _Shape:
        """Its abbreviation."""
        assert self._shape is not None
        return self._shape

    @property
    def start(self) -> int:
        """The offset of its first value."""
        return self._start


class Entries:
    """The entries of one unit.

    Args:
        unit: its header.
        data: the section that has it.
        section: finds the entries of other units.
        shapes: abbreviations by their offsets, which units may share.
        tables: of the unit; None: it names its parts of the tables itself.

    Attributes:
        top: the unit's own entry.
    """

    def __init__(
        self,
        unit: Unit,
        data: bytes,
        section: Section,
        shapes: dict[int, dict[int, _Shape]],
        tables: Tables | None,
    ) -> None:
        self.unit, self._bytes, self._section = unit, data, section
        self._sizes = {**_SIZES, **dict.fromkeys(_OFFSETS, unit.word), "addr": unit.address}
        at = unit.abbreviations
        if at not in shapes:
            table = all_of(section.dwarf.debug_abbrev_sec)
            shapes[at] = _read_shapes(table, at, self._sizes)
        self._shapes = shapes[at]
        self._known: dict[int, Entry] = {}
        self.top = self.at(unit.first)
        bases = (self._plain(name) for name in _BASES)
        self.tables = tables or Tables(section.dwarf, unit.version, False, unit.word, *bases)  # noqa: FBT003

    def _plain(self, name: str) -> int:
        """Return a number of the unit's own entry that needs no table; 0: it has none."""
        at = self.top.start
        for one in self.top.shape.attributes:
            end = self._behind(at, one.form)
            if one.name == name:
                return int.from_bytes(self._bytes[at:end], "little")
            at = end
        return 0

    def number_at(self, start: int, offset: int, size: int) -> int:
        """Return a number among the values that begin at `start`."""
        return int.from_bytes(self._bytes[start + offset : start + offset + size], "little")

    def at(self, offset: int) -> Entry:
        """Return the entry at an offset of .debug_info.

        Raises:
            DWARFError, IndexError, KeyError: there is none.
        """
        entry = self._known.get(offset)
        if entry is None:
            if not self.unit.first <= offset < self.unit.end:
                raise DWARFError(f"no entry at {offset:#x} in the unit")
            code, start = read_number(self._bytes, offset)
            entry = Entry(self, offset, start, self._shapes[code] if code else None)
            self._known[offset] = entry
        return entry

    def find_parents(self, offset: int) -> None:
        """Tell the entry at an offset, and those around it, about their parents."""
        around = self.top
        for _ in range(_DEEPEST):
            last = None
            for child in around.iter_children():
                if child.offset > offset:
                    break
                last = child
            if last is None or last.offset == offset:
                return
            around = last

    def referred(self, form: str, value: int) -> Entry:
        """Return the entry that a value of a form refers to."""
        if form in _IN_UNIT:
            return self.at(self.unit.start + value)
        if form == "ref_addr":
            return self._section.with_offset(value).at(value)
        if form == "ref_sig8":
            return self._section.with_signature(value)
        if form in _OF_SHARED:
            return self._section.shared().with_offset(value).at(value)
        raise DWARFError(f"a reference of form {form}")

    def end_of(self, start: int, shape: _Shape) -> int:
        """Return the offset behind the values of an entry."""
        if shape.size is not None:
            return start + shape.size
        at = start
        for one in shape.attributes:
            at = self._behind(at, one.form)
        return at

    def _behind(self, at: int, form: str) -> int:
        size = self._sizes.get(form)
        if size is not None:
            if form in _BLOCKS:
                return at + size + int.from_bytes(self._bytes[at : at + size], "little")
            return at + size
        if form in _COUNTED:
            length, at = read_number(self._bytes, at)
            return at + length
        if form in _NUMBERS:
            return read_number(self._bytes, at)[1]
        if form == "string":
            return self._bytes.index(b"\0", at) + 1
        raise DWARFError(f"a value of form {form}")

    def read(self, entry: Entry) -> dict[str, Value]:
        """Return the values of an entry by name."""
        found, at, data = {}, entry.start, self._bytes
        for name, form, constant, plain in entry.shape.attributes:
            if plain:
                end = at + plain
                value: Any = int.from_bytes(data[at:end], "little")
            elif form == "implicit_const":
                end, value = at, constant
            else:
                end = self._behind(at, form)
                value = self._value(form, at, end)
            found[name] = Value(form, value)
            at = end
        return found

    def _value(self, form: str, at: int, end: int) -> Any:  # noqa: ANN401 - as pyelftools
        if form in _COUNTED:
            return self._bytes[read_number(self._bytes, at)[1] : end]
        if form in _BLOCKS:
            return self._bytes[at + self._sizes[form] : end]
        if form == "string":
            return self._bytes[at : end - 1]
        if form == "sdata":
            return read_signed(self._bytes, at)[0]
        if form in _NUMBERS:
            number = read_number(self._bytes, at)[0]
        else:
            number = int.from_bytes(self._bytes[at:end], "little")
        if form in ("strp", "line_strp"):
            own = self.tables.sections
            return string_at(
                own.debug_str_sec if form == "strp" else own.debug_line_str_sec, number
            )
        if form in ("GNU_strp_alt", "strp_sup"):
            return string_at(self._section.shared().dwarf.debug_str_sec, number)
        for indexed, read in (
            ("strx", self.tables.string),
            ("addrx", self.tables.address),
            ("loclistx", self.tables.location_list),
            ("rnglistx", self.tables.range_list),
        ):
            if form.startswith(indexed):
                return read(number)
        if form == "flag_present":
            return True
        return bool(number) if form == "flag" else number


class Section:
    """The units of .debug_info, and of .debug_types.

    Args:
        dwarf: the sections of the file.
        tables: of all units, if they are in a file of their own.
        open_shared: returns the section of the file that shares entries and strings with this one.
    """

    def __init__(
        self,
        dwarf: DWARFInfo,
        tables: Tables | None = None,
        open_shared: Callable[[], Section] | None = None,
    ) -> None:
        self.dwarf, self._tables, self._open_shared = dwarf, tables, open_shared
        self._shared: Section | None = None
        self._bytes = all_of(dwarf.debug_info_sec)
        self._entries: dict[int, Entries] = {}
        self._shapes: dict[int, dict[int, _Shape]] = {}

    def shared(self) -> Section:
        """Return the section of the file that dwz(1) moved entries to.

        Raises:
            DWARFError: this file names none.
        """
        if self._shared is None:
            if self._open_shared is None:
                raise DWARFError("no file with shared entries")
            self._shared = self._open_shared()
        return self._shared

    @cached_property
    def units(self) -> list[Unit]:
        """The units of .debug_info by their offsets."""
        return read_units(self._bytes)

    def entries(self, unit: Unit) -> Entries:
        """Return the entries of a unit of .debug_info."""
        known = self._entries.get(unit.start)
        if known is None:
            known = self._entries[unit.start] = self._read(unit, self._bytes)
        return known

    def _read(self, unit: Unit, data: bytes) -> Entries:
        return Entries(unit, data, self, self._shapes, self._tables)

    def with_offset(self, offset: int) -> Entries:
        """Return the entries of the unit that has an offset of .debug_info."""
        number = bisect_right(self.units, offset, key=lambda unit: unit.start)
        return self.entries(self.units[max(number - 1, 0)])

    def with_signature(self, signature: int) -> Entry:
        """Return the type that has a signature.

        Raises:
            DWARFError: there is none.
        """
        found = self._signed.get(signature)
        if found is None:
            raise DWARFError(f"no type with the signature {signature:#x}")
        return found[0].at(found[1])

    @cached_property
    def _signed(self) -> dict[int, tuple[Entries, int]]:
        """Units of one type, and the place of the type, by signature."""
        found = {
            unit.signature: (self.entries(unit), unit.type) for unit in self.units if unit.signature
        }
        types = self.dwarf.debug_types_sec
        if types is not None:
            data = all_of(types)
            for unit in read_units(data, of_types=True):
                found[unit.signature] = self._read(unit, data), unit.type
        return found
