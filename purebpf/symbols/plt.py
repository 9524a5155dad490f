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

__all__ = ["plt_symbols"]

_JUMP = b"\xff\x25"
_GLOB_DAT, _JUMP_SLOT = 6, 7
_MAX_RELOCATIONS = 1 << 20
"""Bytes of relocations worth a look; .rela.dyn names few stubs among many data words."""
_MAX_CODE = 1 << 22
"""Bytes of stubs in a table that are decoded: a quarter of a million."""


def plt_symbols(image: ElfImage) -> Iterator[tuple[int, int, bytes]]:
    """(virtual offset, size in bytes, name) of each stub that can be named."""
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
                for start, size, at in _stubs(code, table, slots):
                    name = strings[at : ends_at(strings, at)]
                    if name:
                        yield start, size, name + b"@plt"


def _stubs(code: bytes, table: Section, slots: dict[int, int]) -> Iterator[tuple[int, int, int]]:
    """Address, size and the place of the name of each stub that jumps to a known slot."""
    size = 8 if table.entry_size == 8 else 16
    for at in range(0, len(code), size):
        jump = code.find(_JUMP, at, at + size)
        if jump < 0 or jump + 6 > len(code):
            continue
        (distance,) = struct.unpack_from("<i", code, jump + 2)
        name = slots.get(table.address + jump + 6 + distance)
        if name is not None:
            yield table.address + at, size, name


def _slots(image: ElfImage, symbols: bytes) -> dict[int, int]:
    """Address of a slot -> where the name of the function is that it will hold."""
    symbol_numbers = {}
    sections = [image.section(".rela.plt")]
    if image.section(".plt.got"):
        sections.append(image.section(".rela.dyn"))
    for section in sections:
        if section is None or section.size > _MAX_RELOCATIONS:
            continue
        for slot, info, _ in struct.iter_unpack("<QQq", _whole(image.contents(section), 24)):
            number = info >> 32
            is_stub = info & 0xFFFFFFFF in (_JUMP_SLOT, _GLOB_DAT)
            if is_stub and 0 < number < len(symbols) // 24:
                (symbol_numbers[slot],) = struct.unpack_from("<I", symbols, number * 24)
    return symbol_numbers


def _whole(data: bytes, size: int) -> bytes:
    return data[: len(data) // size * size]
