"""Units whose entries are in a file of their own (DWARF 5, section 7.3, and GNU's DWARF 4).

The program has a skeleton of each unit, with its addresses. The entries, types and locations are in
a `.dwo` file, or in the `.dwp` file beside the program, which packs the `.dwo` files of all units.
Both know a unit by its ID of eight bytes.
"""

from __future__ import annotations

import posixpath
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from io import BytesIO
from typing import IO

from elftools.dwarf.dwarfinfo import DebugSectionDescriptor, DWARFInfo
from elftools.elf.elffile import ELFFile

from purebpf.dataflow.dwarf_types import NoDebugInfoError
from purebpf.dataflow.entries import Entries, Section
from purebpf.dataflow.locations import Tables

__all__ = [
    "MissingPartError",
    "OpenPart",
    "SharedEntries",
    "SplitUnits",
    "identity_of",
    "is_skeleton",
]

OpenPart = Callable[[str], IO[bytes] | None]
"""Returns the open file of a path, as the program's build named it; None: it is not there.

It stays open as long as the DWARF is read.
"""

_NAMES = ("DW_AT_dwo_name", "DW_AT_GNU_dwo_name")
_GNU = 4
"""The version of DWARF that GNU's compilers split before the standard did."""
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


def is_skeleton(unit: Entries) -> bool:
    """Return True if the entries of a unit are in a file of their own."""
    return any(name in unit.top.attributes for name in _NAMES)


def identity_of(unit: Entries) -> int:
    """Return the ID that a skeleton and its entries share; 0: it has none."""
    if unit.tables.version > _GNU:
        return unit.unit.identity
    return _number(unit, "DW_AT_GNU_dwo_id")


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

    def find(self, skeleton: Entries) -> Tables:
        """Return the sections with the entries of a unit; .debug_info has it among others.

        Raises:
            MissingPartError: neither a `.dwo` nor a `.dwp` file has it.
        """
        found = self._of_package(identity_of(skeleton)) or self._of_file(skeleton)
        if found is None:
            raise MissingPartError("split DWARF: the .dwo file of the unit is not there")
        version, word = skeleton.tables.version, skeleton.tables.word
        sections = _join(self._program, found)
        if version <= _GNU:
            addresses, ranges = (
                _number(skeleton, f"DW_AT_GNU_{name}_base") for name in ("addr", "ranges")
            )
            return Tables(sections, version, True, word, addresses, 0, 0, ranges)  # noqa: FBT003
        addresses = skeleton.tables.addresses
        return Tables(sections, version, True, word, addresses, _STRINGS, _LISTS, _LISTS)  # noqa: FBT003

    def _of_package(self, identity: int) -> Mapping[str, bytes] | None:
        if isinstance(self._package, str):
            stream = self._open(self._path)
            self._package = None if stream is None else _Package(ELFFile(stream))
        return None if self._package is None else self._package.sections(identity)

    def _of_file(self, skeleton: Entries) -> Mapping[str, bytes] | None:
        attributes = skeleton.top.attributes
        name = next(_text(attributes[name].value) for name in _NAMES if name in attributes)
        folder = attributes.get("DW_AT_comp_dir")
        path = posixpath.join(_text(folder.value) if folder is not None else "", name)
        here = posixpath.dirname(self._path)
        for place in (posixpath.join(here, path), posixpath.join(here, posixpath.basename(name))):
            stream = self._open(place)
            if stream is not None:
                return _sections(ELFFile(stream))
        return None


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


class SharedEntries:
    """The file that dwz(1) moved entries and strings of several files to (.gnu_debugaltlink).

    Args:
        elf: the file that names it.
        open_part: opens it.
        path: of the file that names it.
    """

    def __init__(self, elf: ELFFile, open_part: OpenPart, path: str) -> None:
        self._elf, self._open, self._path = elf, open_part, path

    def find(self) -> Section:
        """Return its entries.

        Raises:
            MissingPartError: it is not there, or is of another build.
        """
        section = self._elf.get_section_by_name(".gnu_debugaltlink")
        link = b"" if section is None else section.data()
        name, _, identity = link.partition(b"\0")
        place = posixpath.join(posixpath.dirname(self._path), _text(name))
        stream = self._open(posixpath.normpath(place)) if name else None
        if stream is None:
            raise MissingPartError("the file that dwz moved types to is not there")
        elf = ELFFile(stream)
        notes = elf.get_section_by_name(".note.gnu.build-id")
        if notes is None or not notes.data().endswith(identity) or not identity:
            raise MissingPartError("the file that dwz moved types to is of another build")
        return Section(elf.get_dwarf_info(follow_links=False))


def _number(unit: Entries, name: str) -> int:
    attribute = unit.top.get(name)
    return 0 if attribute is None else int(attribute.value)


def _join(program: DWARFInfo, sections: Mapping[str, bytes]) -> DWARFInfo:
    """Return the sections of a `.dwo` file with those that only the program has."""
    names = ("info", "types", "abbrev", "str", "str_offsets", "loclists", "rnglists", "loc")
    own = {
        f"debug_{name}_sec": DebugSectionDescriptor(BytesIO(found), name, 0, len(found), 0)
        for name in names
        if (found := sections.get(name))
    }
    of_program = ("debug_addr_sec", "debug_ranges_sec", "debug_line_str_sec")
    kept = {name: getattr(program, name) for name in of_program}
    parameters = dict.fromkeys(list(signature(DWARFInfo).parameters)[1:])
    return DWARFInfo(program.config, **{**parameters, **kept, **own})


def _sections(elf: ELFFile) -> dict[str, bytes]:
    """Return the bytes of all .debug_NAME.dwo sections by NAME; of several of a name, all.

    Each unit of one type is in a section of its own.
    """
    found: defaultdict[str, list[bytes]] = defaultdict(list)
    for section in elf.iter_sections():
        if section.name.startswith(".debug_") and section.name.endswith(".dwo"):
            found[section.name[len(".debug_") : -len(".dwo")]].append(section.data())
    return {name: b"".join(parts) for name, parts in found.items()}


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
