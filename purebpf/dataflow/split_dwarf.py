"""Units whose entries are in a file of their own (DWARF 5, section 7.3, and GNU's DWARF 4).

The program has a skeleton of each unit, with its addresses. The entries, types and locations are in
a `.dwo` file, or in the `.dwp` file beside the program, which packs the `.dwo` files of all units.
Both know a unit by its ID of eight bytes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from io import BytesIO
from typing import IO, Any

from elftools.common.exceptions import DWARFError
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import AttributeValue
from elftools.dwarf.dwarfinfo import DebugSectionDescriptor, DWARFInfo
from elftools.dwarf.locationlists import BaseAddressEntry, LocationEntry
from elftools.elf.elffile import ELFFile

from purebpf.dataflow.dwarf_types import NoDebugInfoError

__all__ = ["MissingPartError", "OpenPart", "SplitUnits", "is_skeleton"]

OpenPart = Callable[[str], IO[bytes] | None]
"""Returns the open file of a path, as the program's build named it; None: it is not there.

It stays open as long as the DWARF is read.
"""

_NAMES = ("DW_AT_dwo_name", "DW_AT_GNU_dwo_name")
_GNU = 4
"""The version of DWARF that GNU's compilers split before the standard did."""
_FORMS = {"DW_FORM_GNU_str_index": "DW_FORM_strx", "DW_FORM_GNU_addr_index": "DW_FORM_addrx"}
_OF_INDEX = {1: "info", 3: "abbrev", 5: "loclists", 6: "str_offsets", 8: "rnglists"}
"""DW_SECT_* of a package (DWARF 5, table 7.1)."""
_OF_GNU_INDEX = {1: "info", 3: "abbrev", 5: "loc", 6: "str_offsets"}
_LISTS = 12
"""Bytes of the header of .debug_loclists and .debug_rnglists, in 32-bit DWARF."""
_STRINGS = 8
"""Bytes of the header of .debug_str_offsets."""
_MOST_UNITS = 1 << 20


class MissingPartError(NoDebugInfoError):
    """The entries of a unit are in a file that is not there now."""


def is_skeleton(unit: CompileUnit) -> bool:
    """Return True if the entries of a unit are in a file of their own."""
    attributes = unit.get_top_DIE().attributes
    return any(name in attributes for name in _NAMES)


class SplitUnits:
    """Finds the entries of the skeleton units of a program.

    Args:
        program: the DWARF with the skeletons.
        open_part: opens `.dwo` and `.dwp` files.
        package: the path of the program's `.dwp` file, if it has one; `.dwo` files that moved with
            the program are beside it.
    """

    def __init__(self, program: DWARFInfo, open_part: OpenPart, package: str) -> None:
        self._program, self._open, self._path = program, open_part, package
        self._package: _Package | str | None = "not opened"

    def find(self, skeleton: CompileUnit) -> tuple[CompileUnit, int]:
        """Return the unit with the entries, and the place in .debug_ranges its ranges count from.

        Raises:
            MissingPartError: neither a `.dwo` nor a `.dwp` file has it.
        """
        attributes = skeleton.get_top_DIE().attributes
        identity = _identity(skeleton)
        sections = self._of_package(identity) or self._of_file(attributes)
        if sections is None:
            raise MissingPartError("split DWARF: the .dwo file of the unit is not there")
        part = _Part(self._program, sections, skeleton)
        for unit in part.iter_CUs():
            if _identity(unit) == identity:
                return unit, _number(attributes, "DW_AT_GNU_ranges_base")
        raise MissingPartError("split DWARF: the .dwo file of the unit is of another build")

    def _of_package(self, identity: int) -> Mapping[str, bytes] | None:
        if isinstance(self._package, str):
            stream = self._open(self._path)
            self._package = None if stream is None else _Package(ELFFile(stream))
        return None if self._package is None else self._package.sections(identity)

    def _of_file(self, attributes: Mapping[str, Any]) -> Mapping[str, bytes] | None:
        name = next(os.fsdecode(attributes[name].value) for name in _NAMES if name in attributes)
        folder = attributes.get("DW_AT_comp_dir")
        path = os.path.join(os.fsdecode(folder.value) if folder is not None else "", name)
        here = os.path.dirname(self._path)
        for place in (os.path.join(here, path), os.path.join(here, os.path.basename(name))):
            stream = self._open(place)
            if stream is not None:
                return _sections(ELFFile(stream))
        return None


def _identity(unit: CompileUnit) -> int:
    """Return the ID that a skeleton and its entries share; 0: a unit of types."""
    if unit["version"] > _GNU:
        return unit.header.get("dwo_id") or 0
    return _number(unit.get_top_DIE().attributes, "DW_AT_GNU_dwo_id")


def _number(attributes: Mapping[str, Any], name: str) -> int:
    attribute = attributes.get(name)
    return 0 if attribute is None else int(attribute.value)


def _sections(elf: ELFFile) -> dict[str, bytes]:
    """Return the bytes of all .debug_NAME.dwo sections by NAME."""
    return {
        section.name[len(".debug_") : -len(".dwo")]: section.data()
        for section in elf.iter_sections()
        if section.name.startswith(".debug_") and section.name.endswith(".dwo")
    }


class _Package:
    """A `.dwp` file: the sections of several `.dwo` files, one behind the other, and an index."""

    def __init__(self, elf: ELFFile) -> None:
        index = elf.get_section_by_name(".debug_cu_index")
        self._elf = elf
        self._parts = {} if index is None else dict(_index(index.data()))

    def sections(self, identity: int) -> Mapping[str, bytes] | None:
        """Return the part of each section that belongs to a unit; None: the unit is not here."""
        parts = self._parts.get(identity)
        if parts is None:
            return None
        found = {name: self._read(name, offset, size) for name, (offset, size) in parts.items()}
        return {**found, "str": self._read("str", 0, -1)}

    def _read(self, name: str, offset: int, size: int) -> bytes:
        """Return a part of a section, of which a package may have gigabytes; size -1: all."""
        section = self._elf.get_section_by_name(f".debug_{name}.dwo")
        if section is None:
            return b""
        if size < 0:
            return section.data()
        if section.compressed:
            return section.data()[offset : offset + size]
        self._elf.stream.seek(section["sh_offset"] + offset)
        return self._elf.stream.read(max(0, min(size, section["sh_size"] - offset)))


def _index(table: bytes) -> Iterator[tuple[int, dict[str, tuple[int, int]]]]:
    """Yield units and the place of their sections (DWARF 5, section 7.3.5.3).

    Raises:
        NoDebugInfoError: the index is cut.
    """
    try:
        version, columns, units, slots = struct.unpack_from("<4I", table)
        names = _OF_GNU_INDEX if version == 2 else _OF_INDEX  # noqa: PLR2004 - GNU's version
        if max(columns, units, slots) > _MOST_UNITS:
            raise NoDebugInfoError("split DWARF: a .dwp file with a damaged index")
        identities = struct.unpack_from(f"<{slots}Q", table, 16)
        rows = struct.unpack_from(f"<{slots}I", table, 16 + 8 * slots)
        start = 16 + 12 * slots
        kinds = struct.unpack_from(f"<{columns}I", table, start)
        for identity, row in zip(identities, rows, strict=True):
            if row:
                at = start + 4 * columns * row
                offsets = struct.unpack_from(f"<{columns}I", table, at)
                sizes = struct.unpack_from(f"<{columns}I", table, at + 4 * columns * units)
                yield (
                    identity,
                    {
                        names[kind]: (offset, size)
                        for kind, offset, size in zip(kinds, offsets, sizes, strict=True)
                        if kind in names
                    },
                )
    except struct.error:
        raise NoDebugInfoError("split DWARF: a .dwp file with a damaged index") from None


class _Part(DWARFInfo):
    """The entries of one `.dwo` file, with the addresses of the program.

    The offsets that a whole file states in each unit are those behind the headers here.
    """

    def __init__(
        self, program: DWARFInfo, sections: Mapping[str, bytes], skeleton: CompileUnit
    ) -> None:
        def section(name: str) -> DebugSectionDescriptor | None:
            found = sections.get(name)
            if not found:
                return None
            return DebugSectionDescriptor(BytesIO(found), name, 0, len(found), 0)

        self._is_gnu = skeleton["version"] <= _GNU
        super().__init__(
            config=program.config,
            debug_info_sec=section("info"),
            debug_abbrev_sec=section("abbrev"),
            debug_str_sec=section("str"),
            debug_str_offsets_sec=section("str_offsets"),
            debug_loclists_sec=section("loclists"),
            debug_rnglists_sec=section("rnglists"),
            debug_addr_sec=program.debug_addr_sec,
            debug_ranges_sec=program.debug_ranges_sec if self._is_gnu else None,
            debug_line_sec=section("line"),
            debug_line_str_sec=program.debug_line_str_sec,
            debug_aranges_sec=None,
            debug_frame_sec=None,
            eh_frame_sec=None,
            debug_loc_sec=section("loc"),
            debug_pubtypes_sec=None,
            debug_pubnames_sec=None,
            debug_sup_sec=None,
            gnu_debugaltlink_sec=None,
            debug_types_sec=None,
        )
        attributes = skeleton.get_top_DIE().attributes
        addresses = _number(attributes, "DW_AT_addr_base")
        self._bases = {
            "DW_AT_addr_base": addresses or _number(attributes, "DW_AT_GNU_addr_base"),
            "DW_AT_str_offsets_base": 0 if self._is_gnu else _STRINGS,
            "DW_AT_loclists_base": _LISTS,
            "DW_AT_rnglists_base": _LISTS,
        }

    def get_abbrev_table(self, offset: int) -> Any:  # noqa: ANN401 - pyelftools' AbbrevTable
        """Return a table of abbreviations, with the standard's forms for GNU's."""
        table = super().get_abbrev_table(offset)
        for code in range(1, 1 << 16) if self._is_gnu else ():
            try:
                entry = table.get_abbrev(code)
            except KeyError:
                break
            for attribute in entry["attr_spec"]:
                attribute.form = _FORMS.get(attribute.form, attribute.form)
        return table

    def location_lists(self) -> Any:  # noqa: ANN401 - pyelftools' LocationLists
        """Return the reader of the part's location lists."""
        return _GnuLists(self) if self._is_gnu else super().location_lists()

    def _parse_CU_at_offset(self, offset: int) -> CompileUnit:  # noqa: N802 - pyelftools' name
        unit = super()._parse_CU_at_offset(offset)
        return _Unit(
            self._bases, unit.header, self, unit.structs, unit.cu_offset, unit.cu_die_offset
        )


class _Unit(CompileUnit):
    """A unit whose first entry lacks the offsets that a whole file has there."""

    def __init__(self, bases: Mapping[str, int], *unit: Any) -> None:  # noqa: ANN401
        super().__init__(*unit)
        self._bases = bases

    def get_top_DIE(self) -> Any:  # noqa: ANN401, N802 - pyelftools' name and DIE
        """Return the first entry, with the offsets."""
        if not self.has_top_DIE():
            with suppress(DWARFError):  # its own strings need the offsets; they are not used
                super().get_top_DIE()
            attributes = super().get_top_DIE().attributes
            for name, value in self._bases.items():
                form = "DW_FORM_sec_offset"
                attributes.setdefault(name, AttributeValue(name, form, value, value, 0, 0))
        return super().get_top_DIE()


class _GnuLists:
    """Location lists of .debug_loc.dwo (gcc.gnu.org/wiki/DebugFission)."""

    def __init__(self, part: DWARFInfo) -> None:
        section = part.debug_loc_sec
        self._bytes = b"" if section is None else section.stream.read()

    def get_location_list_at_offset(self, offset: int, die: Any) -> list[Any]:  # noqa: ANN401
        """Return the entries of a list.

        Raises:
            DWARFError: the list is damaged.
        """
        found: list[Any] = []
        stream = BytesIO(self._bytes)
        stream.seek(offset)
        unit = die.cu
        while (kind := _unsigned(stream, 1)) != 0:
            if kind == 1:
                address = unit.dwarfinfo.get_addr(unit, _leb(stream))
                found.append(BaseAddressEntry(0, 0, address))
                continue
            start, end = _gnu_range(stream, kind, unit)
            expression = list(stream.read(_unsigned(stream, 2)))
            found.append(LocationEntry(0, 0, start, end, expression, kind != 4))  # noqa: PLR2004
        return found


def _gnu_range(stream: BytesIO, kind: int, unit: CompileUnit) -> tuple[int, int]:
    """Return the addresses that an entry is for.

    Raises:
        DWARFError: an unknown kind of entry.
    """
    if kind == 4:  # noqa: PLR2004 - DW_LLE_GNU_offset_pair_entry
        return _unsigned(stream, 4), _unsigned(stream, 4)
    if kind not in (2, 3):
        raise DWARFError(f"a location list with an entry of kind {kind}")
    start = unit.dwarfinfo.get_addr(unit, _leb(stream))
    if kind == 2:  # noqa: PLR2004 - DW_LLE_GNU_start_end_entry
        return start, unit.dwarfinfo.get_addr(unit, _leb(stream))
    return start, start + _unsigned(stream, 4)


def _unsigned(stream: BytesIO, size: int) -> int:
    return int.from_bytes(stream.read(size), "little")


def _leb(stream: BytesIO) -> int:
    number = shift = 0
    while True:
        byte = _unsigned(stream, 1)
        number |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a LEB128
            return number
        shift += 7
