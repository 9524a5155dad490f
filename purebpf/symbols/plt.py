"""Names of the procedure linkage table: `func@plt`, the stubs that calls between files go through.

The table has no symbols. A stub is `jmp *slot(%rip)`, and a relocation says which address the
slot will hold, so the jump is decoded rather than the table's order trusted: that covers .plt,
.plt.sec (IBT) and .plt.got alike. x86-64 only.

Layout: System V ABI, AMD64 supplement, "Procedure Linkage Table".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from purebpf.symbols.elf_image import EM_X86_64, SHT_DYNSYM, ElfImage, Section
from purebpf.symbols.longest_name import ends_at
from purebpf.tuples import NamedTuple

__all__ = ["Stub", "plt_stubs", "plt_symbols"]

_JUMP = b"\xff\x25"
_SHORT, _LONG = 8, 16
"""Bytes of a stub: .plt.got without IBT has short ones, as linkers that set no entry size may."""
_GLOB_DAT, _JUMP_SLOT, _IRELATIVE = 6, 7, 37
_STT_FUNC = 2
_MAX_RELOCATIONS = 1 << 20
"""Bytes of relocations worth a look; .rela.dyn names few stubs among many data words."""
_MAX_CODE = 1 << 22
"""Bytes of stubs in a table that are decoded: a quarter of a million."""

_Slot = tuple[int, int, int]
"""Where the name of its function is, the address of the function, and of what chooses it; or 0."""


class Stub(NamedTuple):
    """The function that a stub jumps to.

    Attributes:
        name: of the function; empty for one that the file chooses itself (STT_GNU_IFUNC).
        function: its address before relocation, if the same file has it, though another file may
            take its place; 0 if it does not.
        resolver: the address of the code that chooses the function, if the file chooses it.
    """

    name: bytes
    function: int = 0
    resolver: int = 0


def plt_symbols(image: ElfImage) -> Iterator[tuple[int, int, bytes]]:
    """(virtual offset, size in bytes, name) of each stub that can be named."""
    for start, size, stub in plt_stubs(image):
        if stub.name:
            yield start, size, stub.name + b"@plt"


def plt_stubs(image: ElfImage) -> Iterator[tuple[int, int, Stub]]:
    """(virtual offset, size in bytes, function) of each stub with a relocation."""
    if image.machine != EM_X86_64 or not image.is64:
        return
    tables = [image.section(name) for name in (".plt", ".plt.sec", ".plt.got")]
    if not any(tables):
        return
    symbols = image.section_of_type(SHT_DYNSYM)
    strings = image.contents(image.linked_section(symbols)) if symbols else b""
    slots = _slots(image, image.contents(symbols))
    if slots:
        for table in tables:
            if table is not None:
                code = image.read(table.offset, min(image.size_of(table), _MAX_CODE))
                for start, size, (at, function, resolver) in _stubs(code, table, slots):
                    name = b"" if resolver else strings[at : ends_at(strings, at)]
                    yield start, size, Stub(name, function, resolver)


def _stubs(
    code: bytes, table: Section, slots: dict[int, _Slot]
) -> Iterator[tuple[int, int, _Slot]]:
    """Address, size and contents of the slot of each stub that jumps to a known slot."""
    is_short = not table.entry_size and code[_SHORT : _SHORT + len(_JUMP)] == _JUMP
    size = _SHORT if is_short or table.entry_size == _SHORT else _LONG
    for at in range(0, len(code), size):
        jump = code.find(_JUMP, at, at + size)
        if jump < 0 or jump + 6 > len(code):
            continue
        (distance,) = struct.unpack_from("<i", code, jump + 2)
        slot = slots.get(table.address + jump + 6 + distance)
        if slot is not None:
            yield table.address + at, size, slot


def _slots(image: ElfImage, symbols: bytes) -> dict[int, _Slot]:
    """The contents of each slot by its address."""
    slots = {}
    sections = [image.section(".rela.plt")]
    if image.section(".plt.got"):
        sections.append(image.section(".rela.dyn"))
    for section in sections:
        if section is None or section.size > _MAX_RELOCATIONS:
            continue
        for slot, info, addend in struct.iter_unpack("<QQq", _whole(image.contents(section), 24)):
            number, kind = info >> 32, info & 0xFFFFFFFF
            if kind == _IRELATIVE and addend > 0:
                slots[slot] = (0, 0, addend)
            elif kind in (_JUMP_SLOT, _GLOB_DAT) and 0 < number < len(symbols) // 24:
                name, what, index, value = struct.unpack_from("<IBxHQ", symbols, number * 24)
                is_here = index and what & 15 == _STT_FUNC
                slots[slot] = (name, value if is_here else 0, 0)
    return slots


def _whole(data: bytes, size: int) -> bytes:
    return data[: len(data) // size * size]
