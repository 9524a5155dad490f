"""The structure of an ELF file, as pyelftools reads it: header, sections, relocations, notes.

`read_object` reads headers by struct, because a tool that starts cannot wait for pyelftools
(docs/design/0010-elf-and-layouts.md). Here time does not matter, and pyelftools names more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from elftools.elf import enums
from elftools.elf.descriptions import (
    describe_reloc_type,
    describe_sh_flags,
    describe_sh_type,
)
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import NoteSection

from purebpf.errors import FormatError
from purebpf.tuples import NamedTuple

__all__ = ["ElfReport", "Note", "Relocation", "SectionLine", "describe_elf"]

_BPF_RELOCATIONS = {number: name for name, number in vars(enums)["ENUM_RELOC_TYPE_BPF"].items()}


class SectionLine(NamedTuple):
    """A section header; `flags` are readelf's letters, `relocations` how many apply to it."""

    number: int
    name: str
    type: str
    flags: str
    offset: int
    size: int
    relocations: int


class Relocation(NamedTuple):
    """A relocation: `offset` in bytes of the section that it applies to."""

    section: str
    offset: int
    type: str
    symbol: str


class Note(NamedTuple):
    """A note; `value` is its description as pyelftools reads it, else in hexadecimal."""

    section: str
    owner: str
    type: str
    size: int
    value: str


class ElfReport(NamedTuple):
    """The file; `header` has the names of elf.h."""

    source: str
    header: dict[str, str | int]
    sections: tuple[SectionLine, ...]
    relocations: tuple[Relocation, ...]
    notes: tuple[Note, ...]


def describe_elf(file: BinaryIO, source: str) -> ElfReport:
    """Describe any ELF file, a BPF object or not.

    Raises:
        FormatError: pyelftools cannot read it.
    """
    try:
        elf = ELFFile(file)
        sections = list(elf.iter_sections())
        relocations = tuple(_relocations(elf, sections))
        counts = [0] * len(sections)
        for place, _ in relocations:
            counts[place] += 1
        return ElfReport(
            source,
            _header(elf),
            tuple(
                SectionLine(
                    number,
                    section.name,
                    describe_sh_type(section["sh_type"]),
                    describe_sh_flags(section["sh_flags"]).strip(),
                    section["sh_offset"],
                    section["sh_size"],
                    counts[number],
                )
                for number, section in enumerate(sections)
            ),
            tuple(relocation for _, relocation in relocations),
            tuple(_notes(sections)),
        )
    except Exception as error:  # noqa: BLE001 - damaged bytes fail anywhere in pyelftools
        problem = str(error) or type(error).__name__
        raise FormatError(source, "ELF file", f"pyelftools cannot read it: {problem}") from None


def _header(elf: ELFFile) -> dict[str, str | int]:
    names = ("e_type", "e_machine", "e_version", "e_entry", "e_flags", "e_phnum", "e_shnum")
    ident = elf.header["e_ident"]
    return {
        "class": ident["EI_CLASS"],
        "data": ident["EI_DATA"],
        "osabi": ident["EI_OSABI"],
        **{name: elf.header[name] for name in names},
    }


def _relocations(elf: ELFFile, sections: list[Any]) -> Iterator[tuple[int, Relocation]]:
    """Each relocation, with the number of the section that it applies to."""
    for table in sections:
        if not isinstance(table, RelocationSection):
            continue
        place = table["sh_info"]
        symbols = elf.get_section(table["sh_link"])
        for relocation in table.iter_relocations():
            kind = relocation["r_info_type"]
            name = _BPF_RELOCATIONS.get(kind) if elf["e_machine"] == "EM_BPF" else None
            yield (
                place,
                Relocation(
                    sections[place].name,
                    relocation["r_offset"],
                    name or describe_reloc_type(kind, elf),
                    _symbol(elf, symbols, relocation["r_info_sym"]),
                ),
            )


def _symbol(elf: ELFFile, symbols: Any, number: int) -> str:
    """The name of a symbol, or of the section that it is for."""
    if not number or not hasattr(symbols, "get_symbol"):
        return ""
    symbol = symbols.get_symbol(number)
    if symbol.name or symbol["st_info"]["type"] != "STT_SECTION":
        return str(symbol.name)
    return str(elf.get_section(symbol["st_shndx"]).name)


def _notes(sections: list[Any]) -> Iterator[Note]:
    for section in sections:
        if not isinstance(section, NoteSection):
            continue
        for note in section.iter_notes():
            raw, value = note["n_descdata"], note["n_desc"]
            readable = isinstance(value, str) and value.isprintable()
            yield Note(
                section.name,
                str(note["n_name"]),
                _note_type(str(note["n_name"]), note["n_type"]),
                note["n_descsz"],
                value if readable else raw.hex(),
            )


def _note_type(owner: str, note_type: str | int) -> str:
    """Return the name of a note's type: pyelftools takes the numbers of all owners for GNU's."""
    numbers: dict[Any, Any] = dict(enums.ENUM_NOTE_N_TYPE)
    number = numbers.get(note_type, note_type)
    if owner == "GNU" or not isinstance(number, int):
        return str(note_type)
    return "NT_STAPSDT" if (owner, number) == ("stapsdt", 3) else hex(number)
