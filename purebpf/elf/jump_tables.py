"""Jump tables: where a `switch` leads to, in section `.jumptables` (clang 22, `-mcpu=v4`).

A table is a symbol with a size. Each of its entries of 8 bytes is an instruction of the function
that jumps, as a byte offset in that function's section.
Source: libbpf, create_jt_map; llvm, BPFAsmPrinter::emitJumpTableInfo.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from purebpf.abi.instruction import INSN_SIZE
from purebpf.elf.container import ElfObject, Symbol
from purebpf.elf.functions import Function

JUMP_TABLES = ".jumptables"
ENTRY_SIZE = 8


def read_jump_tables(
    elf: ElfObject, function: Function, symbols: Iterable[Symbol]
) -> dict[str, tuple[int, ...]]:
    """The tables of a function by name: places in bytes from its first instruction.

    Raises:
        FormatError: a table outside of the section, without entries, of broken ones, or with
            entries that are not instructions of the function.
    """
    return {symbol.name: _read(elf, function, symbol) for symbol in dict.fromkeys(symbols)}


def _read(elf: ElfObject, function: Function, table: Symbol) -> tuple[int, ...]:
    where = f"jump table {table.name or 'without a name'} of {function.name}"
    contents = elf.contents(elf.sections[table.section])
    if not table.size or table.value + table.size > len(contents):
        problem = f"{table.size} bytes at {table.value:#x} of {len(contents)}"
        raise elf.error(where, problem)
    if table.value % ENTRY_SIZE or table.size % ENTRY_SIZE:
        raise elf.error(where, f"{table.size} bytes at {table.value:#x} are not whole entries")
    count = table.size // ENTRY_SIZE
    places: tuple[int, ...] = struct.unpack_from(f"{elf.prefix}{count}Q", contents, table.value)
    for place in places:
        if place % INSN_SIZE or not function.start <= place < function.end:
            section = function.section.name
            raise elf.error(where, f"leads to {section}+{place:#x}, outside of the function")
    return tuple(place - function.start for place in places)
