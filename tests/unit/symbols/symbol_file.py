"""ELF files made of nothing but symbols, in any class and byte order."""

from __future__ import annotations

import struct
from typing import NamedTuple

LOCAL, GLOBAL, WEAK = 0, 1, 2
NOTYPE, OBJECT, FUNC, IFUNC = 0, 1, 2, 10
TEXT, DATA = 1, 2
"""Section numbers: code at 0x1000 to 0x3000, data at 0x4000 to 0x5000."""


class Sym(NamedTuple):
    name: str
    value: int
    size: int
    bind: int = GLOBAL
    type: int = FUNC
    section: int = TEXT
    other: int = 0


def symbol_file(
    *symbols: Sym, bits: int = 64, order: str = "<", machine: int = 62, kind: int = 3
) -> bytes:
    """A file with a .symtab of these symbols, and one executable segment: 0x1000 at offset 0."""
    strings, names = bytearray(b"\0"), []
    for symbol in symbols:
        names.append(len(strings))
        strings += symbol.name.encode() + b"\0"
    table = bytearray(24 if bits == 64 else 16)
    for symbol, name in zip(symbols, names, strict=True):
        info = symbol.bind << 4 | symbol.type
        if bits == 64:
            fields = (name, info, symbol.other, symbol.section, symbol.value, symbol.size)
            table += struct.pack(f"{order}IBBHQQ", *fields)
        else:
            fields = (name, symbol.value, symbol.size, info, symbol.other, symbol.section)
            table += struct.pack(f"{order}IIIBBH", *fields)
    section_names = b"\0.text\0.data\0.symtab\0.strtab\0"
    head = 64 if bits == 64 else 52
    program = 56 if bits == 64 else 32
    at = head + program
    rows = [
        (0,) * 10,
        (1, 1, 6, 0x1000, 0, 0x2000, 0, 0, 16, 0),
        (7, 8, 3, 0x4000, 0, 0x1000, 0, 0, 16, 0),
    ]
    entry = 24 if bits == 64 else 16
    rows.append((13, 2, 0, 0, at, len(table), 4, 1, 8, entry))
    rows.append((21, 3, 0, 0, at + len(table), len(strings), 0, 0, 1, 0))
    rows.append((0, 3, 0, 0, at + len(table) + len(strings), len(section_names), 0, 0, 1, 0))
    shoff = at + len(table) + len(strings) + len(section_names)
    word = "QQQ" if bits == 64 else "III"
    ident = b"\x7fELF" + bytes([bits // 32, 1 if order == "<" else 2, 1]) + bytes(9)
    shsize = 64 if bits == 64 else 40
    header = struct.pack(
        f"{order}HHI{word}IHHHHHH", kind, machine, 1, 0, head, shoff, 0, head, program, 1,
        shsize, len(rows), 5,
    )  # fmt: skip
    if bits == 64:
        segment = struct.pack(f"{order}IIQQQQQQ", 1, 5, 0, 0x1000, 0x1000, 0x2000, 0x2000, 4096)
    else:
        segment = struct.pack(f"{order}IIIIIIII", 1, 0, 0x1000, 0x1000, 0x2000, 0x2000, 5, 4096)
    layout = f"{order}IIQQQQIIQQ" if bits == 64 else f"{order}IIIIIIIIII"
    sections = b"".join(struct.pack(layout, *row) for row in rows)
    return ident + header + segment + table + strings + section_names + sections
