"""The functions of an object and their places: from the symbols of its executable sections.

A static function may share its name with others; its key then says where it is.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from operator import attrgetter

from purebpf.abi.instruction import INSN_SIZE, LD_IMM64
from purebpf.elf.container import (
    STB_GLOBAL,
    STB_LOCAL,
    STB_WEAK,
    STT_FUNC,
    ElfObject,
    Section,
    Symbol,
)
from purebpf.errors import FormatError
from purebpf.tuples import NamedTuple

_STT_NOTYPE = 0
_LINKAGE = {STB_LOCAL: "static", STB_GLOBAL: "global", STB_WEAK: "weak"}


class Function(NamedTuple):
    """A function's place: `start` to `end` are bytes of its section.

    `local` says that it is static in C; a hidden one only has that linkage.
    """

    key: str
    name: str
    section: Section
    start: int
    end: int
    linkage: str
    local: bool


class Functions(NamedTuple):
    """The functions of an object, by key, and by section index in the order of their starts.

    Those with several names are there once for each.
    """

    by_key: dict[str, Function]
    by_section: dict[int, list[Function]]

    def at(self, section: int, offset: int) -> Function | None:
        """The function that starts at an offset, by any of its names."""
        functions = self.by_section.get(section, ())
        index = bisect_right(functions, offset, key=attrgetter("start")) - 1
        if index >= 0 and functions[index].start == offset:
            return functions[index]
        return None


def find_functions(elf: ElfObject) -> Functions:
    """Every function that has a symbol; code without one is dead and left out.

    Raises:
        FormatError: functions that overlap, leave their section, are not a whole number of
            instructions, end inside an ld_imm64, or share a global name.
    """
    by_section: dict[int, list[Function]] = {}
    names: set[str] = set()
    for section in elf.sections:
        if section.executable:
            if section.name in names:
                raise elf.error(f"section {section.name}", "occurs twice")
            names.add(section.name)
            if section.size % INSN_SIZE:
                problem = f"{section.size} bytes are not a whole number of instructions"
                raise elf.error(f"section {section.name}", problem)
            by_section[section.number] = []
    symbols: dict[int, list[Symbol]] = {index: [] for index in by_section}
    for symbol in elf.symbols:
        if symbol.section in symbols:
            symbols[symbol.section].append(symbol)
    for index, labels in symbols.items():
        starts = sorted(_function_symbols(labels), key=attrgetter("value"))
        by_section[index] = _place(elf, elf.sections[index], starts)
    return _with_keys(elf, by_section)


def _function_symbols(symbols: list[Symbol]) -> list[Symbol]:
    """Return the functions among a section's symbols. Old LLVM gives them no type."""
    typed = [symbol for symbol in symbols if symbol.type == STT_FUNC]
    return typed or [s for s in symbols if s.type == _STT_NOTYPE and s.binding != STB_LOCAL]


def _place(elf: ElfObject, section: Section, symbols: list[Symbol]) -> list[Function]:
    """The functions of one section; one without a size reaches to the next, or to the end.

    One function may have several names (`__attribute__((alias))`): there is one for each.
    """
    functions = []
    code = elf.contents(section)
    starts = sorted({section.size, *(symbol.value for symbol in symbols)})
    limits = dict(pairwise(starts))
    for symbol in symbols:
        limit = min(limits.get(symbol.value, 0), section.size)
        where = f"function {symbol.name} at {section.name}+{symbol.value:#x}"
        end = symbol.value + symbol.size if symbol.size else limit
        if symbol.binding not in _LINKAGE:
            raise elf.error(where, f"unknown symbol binding {symbol.binding}")
        if not symbol.name:
            raise elf.error(where, "has no name")
        if symbol.value % INSN_SIZE or end % INSN_SIZE or end <= symbol.value:
            raise elf.error(
                where, f"{end - symbol.value} bytes are not a whole number of instructions"
            )
        if end > limit:
            raise elf.error(where, "overlaps the next function, or leaves the section")
        if code[end - INSN_SIZE] == LD_IMM64:
            raise elf.error(where, "ends inside an ld_imm64")
        linkage = "static" if symbol.hidden else _LINKAGE[symbol.binding]
        local = symbol.binding == STB_LOCAL
        functions.append(Function("", symbol.name, section, symbol.value, end, linkage, local))
    return functions


def _with_keys(elf: ElfObject, by_section: dict[int, list[Function]]) -> Functions:
    """Name every function: global ones as they are, others so that no two are the same."""
    unnamed = [function for functions in by_section.values() for function in functions]
    taken = {function.name: function for function in unnamed if not function.local}
    by_key: dict[str, Function] = {}
    for function in unnamed:
        key = function.name
        if taken.setdefault(key, function) is not function:
            if not function.local:
                raise _duplicate(elf, function)
            key = f"{key}@{function.section.name}+{function.start:#x}"
            if key in taken or key in by_key:
                raise _duplicate(elf, function)
        by_key[key] = function._replace(key=key)
    placed: dict[int, list[Function]] = {index: [] for index in by_section}
    for function in by_key.values():
        placed[function.section.number].append(function)
    return Functions(by_key, placed)


def _duplicate(elf: ElfObject, function: Function) -> FormatError:
    return elf.error(f"function {function.name}", "is defined twice")
