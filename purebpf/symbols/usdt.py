"""USDT probes of an ELF file: their places, semaphores and arguments.

A probe is a `nop` in the code and a note about it in .note.stapsdt: the nop's address, the address
of .stapsdt.base when the file was linked, the address of a semaphore, and the strings provider,
name and arguments. If prelink(8) has moved the file's segments since, .stapsdt.base has moved with
them, so its displacement is added to the other two.

The linker keeps the note of a function that it removed (`--gc-sections`), with an address where
there is no code: such a probe is omitted, and the probes of other functions are not affected.
Source: https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from purebpf.errors import FormatError
from purebpf.symbols.elf_image import CHECKED, PF_X, PT_LOAD, SHF_ALLOC, SHF_EXECINSTR, ElfImage
from purebpf.symbols.elf_notes import iter_notes
from purebpf.symbols.frame import FileOffset, VirtualOffset
from purebpf.tuples import NamedTuple

__all__ = ["Note", "UsdtProbe", "parse_note", "usdt_probes"]

_SECTION = ".note.stapsdt"
_BASE = ".stapsdt.base"
_OWNER = b"stapsdt\0"
_NOTE_TYPE = 3
_STRINGS = 3


class Note(NamedTuple):
    """A note as the linker left it: three addresses and three strings."""

    place: int
    base: int
    semaphore: int
    provider: str
    name: str
    arguments: str


class UsdtProbe(NamedTuple):
    """A place in the code of a probe of this name; a name may have many.

    Attributes:
        provider: "libc", "python".
        name: "setjmp", "function__entry".
        arguments: where they are: "8@%rdi -4@%esi", by machine (`usdt_arguments`).
        address: of the nop, as the segments say.
        offset: of the nop in the file.
        semaphore: offset in the file of a 16-bit counter to raise while watching; 0 for none.
    """

    provider: str
    name: str
    arguments: str
    address: VirtualOffset
    offset: FileOffset
    semaphore: FileOffset


def parse_note(description: bytes, order: str, *, is64: bool) -> Note:
    """The contents of one note; `order` as struct spells it.

    Raises:
        ValueError: it is too short, or its strings do not end.
    """
    addresses = struct.Struct(f"{order}{'QQQ' if is64 else 'III'}")
    if len(description) < addresses.size + _STRINGS:
        raise ValueError(f"{len(description)} bytes are too few for a probe")
    strings = description[addresses.size :].split(b"\0", _STRINGS)
    if len(strings) <= _STRINGS or not strings[1]:
        raise ValueError("its strings are not provider, name and arguments")
    provider, name, arguments = (
        field.decode("utf-8", "backslashreplace") for field in strings[:_STRINGS]
    )
    arguments = "" if arguments.startswith(":") else arguments
    place, base, semaphore = addresses.unpack_from(description)
    return Note(place, base, semaphore, provider, name, arguments)


def usdt_probes(image: ElfImage, left_out: dict[str, str] | None = None) -> Iterator[UsdtProbe]:
    """Yield the probes of a program or library that can be used, in the order of its notes.

    Args:
        image: the program or library.
        left_out: gets the reason for each note that leads nowhere, by "provider:name".

    Raises:
        FormatError: a malformed note.
    """
    section = image.section(_SECTION)
    if section is None:
        return
    base = image.section(_BASE)
    notes = iter_notes(image.contents(section), section.align, image.order)
    for index, (owner, kind, description) in enumerate(notes):
        if not index % CHECKED:
            image.check()
        if owner != _OWNER or kind != _NOTE_TYPE:
            continue
        try:
            note = parse_note(description, image.order, is64=image.is64)
        except ValueError as error:
            raise FormatError(image.source, _SECTION, str(error)) from None
        moved = base.address - note.base if base is not None and note.base else 0
        place = VirtualOffset(note.place + moved)
        offset = _in_file(image, place, code=True) if _is_code(image, place) else None
        semaphore: FileOffset | None = FileOffset(0)
        if note.semaphore:
            semaphore = _in_file(image, note.semaphore + moved, code=False)
        if offset is not None and semaphore is not None:
            yield UsdtProbe(note.provider, note.name, note.arguments, place, offset, semaphore)
        elif left_out is not None:
            left_out[f"{note.provider}:{note.name}"] = (
                f"its note says {place:#x}, where the file has no code: the linker removed the "
                "function (--gc-sections)"
                if offset is None
                else f"its semaphore at {note.semaphore + moved:#x} is not in the file's data"
            )


def _is_code(image: ElfImage, address: int) -> bool:
    """Return True if a section of code holds the address, or the file has no sections.

    Segments alone do not tell: the first one, executable in some files, begins with the headers,
    and the linker gives removed functions addresses near 0.
    """
    wanted = SHF_ALLOC | SHF_EXECINSTR
    return not image.sections or any(
        section.flags & wanted == wanted and 0 <= address - section.address < section.size
        for section in image.sections
    )


def _in_file(image: ElfImage, address: int, *, code: bool) -> FileOffset | None:
    for segment in image.segments:
        inside = 0 <= address - segment.address < segment.file_size
        if segment.type == PT_LOAD and inside and bool(segment.flags & PF_X) == code:
            return FileOffset(address - segment.address + segment.offset)
    return None
