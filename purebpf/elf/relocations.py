"""The symbols that a function's instructions refer to, by relocations and plain calls.

clang writes SHT_REL: the addend is in the instruction. For a call it is the
distance in instructions less one, counted from the symbol; for an address, bytes. A call inside
a section has no relocation at all, its distance is already right.
Source: llvm/docs/BPF relocations ("Documentation/bpf/llvm_reloc.rst" of the kernel).
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from operator import itemgetter

from purebpf.abi.instruction import CALL, INSN_SIZE, LD_IMM64, PSEUDO_CALL
from purebpf.elf.btf_repair import KCONFIG
from purebpf.elf.container import (
    SHN_LORESERVE,
    SHN_UNDEF,
    STB_LOCAL,
    STT_SECTION,
    ElfObject,
    Section,
    Symbol,
)
from purebpf.elf.functions import Function, Functions
from purebpf.elf.jump_tables import ENTRY_SIZE, read_jump_tables
from purebpf.errors import FormatError, LinkError
from purebpf.spec import ExternSpec, Relocation, RelocationKind
from purebpf.tuples import NamedTuple

R_BPF_NONE = 0
R_BPF_64_64 = 1
R_BPF_64_32 = 10

_OPCODE = {R_BPF_64_64: LD_IMM64, R_BPF_64_32: CALL}
_NOT_RELOCATED = (".debug_", ".BTF")
_LAYOUTS = {"SHT_REL": "QQ", "SHT_RELA": "QQq"}


class RawRelocation(NamedTuple):
    """A relocation as in the file; `addend` is None when it is in the place itself."""

    offset: int
    type: int
    symbol: Symbol
    addend: int | None


class Referents(NamedTuple):
    """The objects that relocations can lead to.

    `maps` is by section index and offset; `data` names the maps of data sections by section
    index; `kconfig` has the place of each configuration value in their map; `jump_tables` is the
    section of those, or 0.
    """

    functions: Functions
    maps: Mapping[tuple[int, int], str]
    data: Mapping[int, str]
    externs: Mapping[str, ExternSpec]
    kconfig: Mapping[str, int]
    jump_tables: int = 0


def read_relocations(elf: ElfObject) -> dict[int, list[RawRelocation]]:
    """Every relocation, by the index of the section it applies to, sorted by offset.

    Relocations of DWARF are skipped: purebpf does not read it, and their offsets count uncompressed
    bytes. Relocations of BTF are skipped as well, which is read by its own offsets.

    Raises:
        FormatError: a table that is malformed, or names a section or symbol that is not there.
    """
    by_section: dict[int, list[RawRelocation]] = {}
    for table in elf.sections:
        if table.type in _LAYOUTS and table.size:
            if not 0 < table.info < len(elf.sections):
                problem = f"applies to section {table.info}, which does not exist"
                raise elf.error(f"section {table.name}", problem)
            if not elf.sections[table.info].name.startswith(_NOT_RELOCATED):
                by_section.setdefault(table.info, []).extend(_read_table(elf, table))
    for relocations in by_section.values():
        relocations.sort(key=itemgetter(0))
    return by_section


def _read_table(elf: ElfObject, table: Section) -> Iterator[RawRelocation]:
    layout = struct.Struct(elf.prefix + _LAYOUTS[str(table.type)])
    if table.entsize != layout.size or table.size % layout.size:
        problem = f"{table.size} bytes of {table.entsize}-byte relocations"
        raise elf.error(f"section {table.name}", problem)
    section, symbols = elf.sections[table.info], elf.symbols
    for offset, info, *addend in layout.iter_unpack(elf.contents(table)):
        kind, symbol = info & 0xFFFFFFFF, info >> 32
        if kind == R_BPF_NONE:
            continue
        if symbol >= len(symbols) or offset >= section.size:
            problem = f"the section has {section.size} bytes"
            if symbol >= len(symbols):
                problem = f"symbol {symbol} does not exist"
            raise elf.error(f"relocation of {section.name}+{offset:#x}", problem)
        yield RawRelocation(offset, kind, symbols[symbol], *(addend or (None,)))


class Resolver:
    """Finds the target of each instruction of an object."""

    def __init__(
        self, elf: ElfObject, raw: Mapping[int, list[RawRelocation]], referents: Referents
    ) -> None:
        self._elf = elf
        self._raw = raw
        self._referents = referents
        self._source_first = elf.byteorder == "big"

    def references(self, function: Function) -> tuple[Relocation, ...]:
        """The relocations of a function, by offset from its start.

        Raises:
            FormatError: a relocation of an unknown kind, or one that does not fit its place.
            LinkError: the symbol has no definition and no declaration as an extern, or is not a
                map.
        """
        references: dict[int, Relocation] = {}
        for raw in self._of(function):
            offset = raw.offset - function.start
            if offset in references:
                raise self._error(function, raw.offset, "two relocations of one instruction")
            references[offset] = self._resolve(function, raw)
        for offset in self._calls(function):
            if offset not in references:
                references[offset] = self._call_within(function, offset)
        return tuple(references[offset] for offset in sorted(references))

    def jump_tables(self, function: Function) -> dict[str, tuple[int, ...]]:
        """The jump tables of a function, by name: see `read_jump_tables`."""
        section = self._referents.jump_tables
        if not section:
            return {}
        used = [raw.symbol for raw in self._of(function) if raw.symbol.section == section]
        return read_jump_tables(self._elf, function, used)

    def _of(self, function: Function) -> list[RawRelocation]:
        """The relocations of a function's instructions."""
        relocations = self._raw.get(function.section.number, [])
        first = bisect_left(relocations, function.start, key=itemgetter(0))
        last = bisect_left(relocations, function.end, key=itemgetter(0))
        return relocations[first:last]

    def _error(self, function: Function, offset: int, problem: str) -> FormatError:
        return self._elf.error(f"{function.name} at {function.section.name}+{offset:#x}", problem)

    def _imm(self, function: Function, offset: int) -> int:
        code = self._elf.contents(function.section)
        imm: int = struct.unpack_from(self._elf.prefix + "i", code, offset + 4)[0]
        return imm

    def _source_register(self, registers: int) -> int:
        return registers & 15 if self._source_first else registers >> 4

    def _calls(self, function: Function) -> Iterator[int]:
        """Offsets, from the function's start, of calls of BPF functions."""
        code = bytes(self._elf.contents(function.section)[function.start : function.end])
        opcodes, registers = code[::INSN_SIZE], code[1::INSN_SIZE]
        position = opcodes.find(CALL)
        while position >= 0:
            if self._source_register(registers[position]) == PSEUDO_CALL:
                yield position * INSN_SIZE
            position = opcodes.find(CALL, position + 1)

    def _call_within(self, function: Function, offset: int) -> Relocation:
        place = function.start + offset
        target = place + (self._imm(function, place) + 1) * INSN_SIZE
        return self._call(function, offset, function.section.number, target)

    def _call(self, function: Function, offset: int, section: int, target: int) -> Relocation:
        called = self._referents.functions.at(section, target)
        if called is None:
            problem = (
                f"calls {self._elf.sections[section].name}{target:+#x}, where no function starts"
            )
            raise self._error(function, function.start + offset, problem)
        return Relocation(offset, RelocationKind.CALL, called.key)

    def _resolve(self, function: Function, raw: RawRelocation) -> Relocation:
        code = self._elf.contents(function.section)
        expected = _OPCODE.get(raw.type)
        if expected is None:
            raise self._error(function, raw.offset, f"unknown relocation type {raw.type}")
        if raw.offset % INSN_SIZE or code[raw.offset] != expected:
            problem = f"relocation type {raw.type} does not fit the instruction"
            raise self._error(function, raw.offset, problem)
        if raw.symbol.section == SHN_UNDEF:
            return self._resolve_extern(function, raw)
        if raw.symbol.section >= SHN_LORESERVE:
            raise self._unusable(raw, "is a common or absolute symbol; initialise it")
        if expected == CALL:
            return self._resolve_call(function, raw)
        return self._resolve_address(function, raw)

    def _resolve_extern(self, function: Function, raw: RawRelocation) -> Relocation:
        """Resolve a symbol that the object does not define: a kernel symbol, or a configuration
        value's place.
        """
        name, offset = raw.symbol.name, raw.offset - function.start
        if name not in self._referents.externs:
            raise LinkError(
                self._elf.source,
                name or "a nameless symbol",
                f"{function.name} refers to it, but it is neither defined here nor declared "
                "with __ksym or __kconfig",
            )
        if name not in self._referents.kconfig:
            return Relocation(offset, RelocationKind.EXTERN, name)
        if raw.type != R_BPF_64_64:
            raise self._unusable(raw, "is a configuration value, and cannot be called")
        return Relocation(offset, RelocationKind.DATA, KCONFIG, self._referents.kconfig[name])

    def _resolve_call(self, function: Function, raw: RawRelocation) -> Relocation:
        code = self._elf.contents(function.section)
        if self._source_register(code[raw.offset + 1]) != PSEUDO_CALL:
            raise self._error(function, raw.offset, "relocation of a helper call")
        addend = raw.addend
        if addend is None:
            addend = (self._imm(function, raw.offset) + 1) * INSN_SIZE
        target = raw.symbol.value + addend
        return self._call(function, raw.offset - function.start, raw.symbol.section, target)

    def _resolve_address(self, function: Function, raw: RawRelocation) -> Relocation:
        """An ld_imm64: of a function, a map, or a place in a data section."""
        referents, symbol = self._referents, raw.symbol
        addend = raw.addend if raw.addend is not None else self._imm(function, raw.offset)
        place = symbol.value + addend
        offset = raw.offset - function.start
        if symbol.section in referents.functions.by_section:
            called = referents.functions.at(symbol.section, place)
            if called is None:
                raise self._unusable(raw, f"{place:+#x} is not where a function starts")
            return Relocation(offset, RelocationKind.FUNCTION, called.key)
        if symbol.section in referents.data:
            size = self._elf.sections[symbol.section].size
            if not 0 <= place < size:
                raise self._error(function, raw.offset, f"{place:#x} is outside of {size} bytes")
            return Relocation(offset, RelocationKind.DATA, referents.data[symbol.section], place)
        if symbol.section == referents.jump_tables:
            if addend % ENTRY_SIZE or not 0 <= addend < symbol.size:
                raise self._unusable(raw, f"has no entry at {addend:+#x}")
            return Relocation(offset, RelocationKind.JUMP_TABLE, symbol.name, addend)
        if any(symbol.section == section for section, _ in referents.maps):
            name = referents.maps.get((symbol.section, symbol.value))
            if name is None or symbol.binding == STB_LOCAL:
                raise self._unusable(raw, "is not a map that other objects can see; is it static?")
            return Relocation(offset, RelocationKind.MAP, name)
        section = self._elf.sections[symbol.section].name
        raise self._unusable(
            raw, f"is in section {section}, which holds nothing that a program can use"
        )

    def _unusable(self, raw: RawRelocation, problem: str) -> LinkError:
        symbol = raw.symbol
        name = symbol.name
        if symbol.type == STT_SECTION and 0 < symbol.section < len(self._elf.sections):
            name = self._elf.sections[symbol.section].name
        return LinkError(self._elf.source, name or "a nameless symbol", problem)
