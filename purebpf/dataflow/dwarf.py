"""Functions, variables and types of one file from DWARF 4 and 5, read by units on demand."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator
from functools import cached_property
from typing import IO, Any

from elftools.elf.elffile import ELFFile

from purebpf.dataflow.dwarf_types import NoDebugInfoError, TypeReader, name_of_entry, origin
from purebpf.dataflow.entries import Entries, Entry, Section
from purebpf.dataflow.layout import find
from purebpf.dataflow.locations import (
    Tables,
    all_of,
    list_at,
    parse_pieces,
    parse_single,
    ranges_at,
)
from purebpf.dataflow.split_dwarf import (
    MissingPartError,
    OpenPart,
    SharedEntries,
    SplitUnits,
    identity_of,
    is_skeleton,
)
from purebpf.dataflow.types import Kind, Type, bare, byte_size
from purebpf.dataflow.units import Unit, read_ranges
from purebpf.tuples import NamedTuple

__all__ = ["DebugInfo", "Function", "Global", "Location", "NoDebugInfoError"]

_BLOCKS = ("DW_TAG_lexical_block", "DW_TAG_inlined_subroutine", "DW_TAG_try_block")
_VARIABLES = ("DW_TAG_variable", "DW_TAG_formal_parameter")
_SPACES = ("DW_TAG_namespace", "DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_module")
_C = frozenset({0x01, 0x02, 0x0C, 0x1D, 0x2C, 0x3E})
"""DW_LANG_* of C from 1989 to 2023, whose structs have no functions."""
_CPP = frozenset({0x04, 0x1A, 0x21, 0x2B, 0x3A})
"""DW_LANG_* of C++ from 1998 to 2023."""
_NOCALL = 3
"""DW_CC_nocall: only calls that the compiler knows lead there."""
_END = 1 << 64
_WORD = 8
_FIRST_FILE_IS_0 = 5
"""The version of line tables that number their files from 0."""


class Location(NamedTuple):
    """A variable, and its place while the instruction pointer is in [start, end).

    Attributes:
        depth: of the block or inlined function that it belongs to; 0: the function's own.
    """

    start: int
    end: int
    operation: str
    operand: int
    name: str
    type: Type | None
    depth: int = 0


class Function:
    """A function, or a part of one: the addresses [start, end) as the file was linked.

    The rest is read when it is asked for: a unit may have a thousand functions, and samples few.
    """

    def __init__(self, start: int, end: int, reader: _UnitReader, entry: Entry) -> None:
        self.start, self.end = start, end
        self._reader, self._entry = reader, entry

    @cached_property
    def name(self) -> str:
        """Its name; "" without one."""
        return name_of_entry(self._entry)

    @cached_property
    def result(self) -> Type | None:
        """The type that it returns; None is void."""
        return self._reader.type_of(self._entry)

    @cached_property
    def parameters(self) -> tuple[tuple[str, Type | None], ...]:
        """The names and the types of its parameters, in order."""
        return self._reader.parameters_of(self._entry)

    @cached_property
    def unusual_call(self) -> str:
        """The reason why its parameters are not in the registers that C uses for them, or ""."""
        return self._reader.unusual_call_of(self._entry)

    @cached_property
    def variables(self) -> tuple[Location, ...]:
        """The variables of it and of inlined functions, each in a register or on the stack."""
        return self._reader.variables_of(self._entry)

    @cached_property
    def frame_base(self) -> tuple[str, int] | None:
        """`DW_OP_...`, and its number, that stack offsets count from."""
        return self._reader.frame_base_of(self._entry)


class Global(NamedTuple):
    """A variable at a fixed address."""

    address: int
    name: str
    type: Type | None


class _Globals:
    """Variables by address."""

    def __init__(self) -> None:
        self._addresses: list[int] = []
        self._variables: list[Global] = []

    def add(self, variable: Global) -> None:
        """Add a variable, behind others of its address."""
        number = bisect_right(self._addresses, variable.address)
        self._addresses.insert(number, variable.address)
        self._variables.insert(number, variable)

    def at(self, address: int) -> Global | None:
        """Return the variable that has an address."""
        number = bisect_right(self._addresses, address) - 1
        if number < 0:
            return None
        found = self._variables[number]
        return found if address < found.address + max(byte_size(found.type), 1) else None


class DebugInfo:
    """The debugging information of a file.

    Args:
        stream: the file, open for reading.
        open_part: opens the other files with parts of the DWARF by their paths.
        package: the path of the file's `.dwp` file, if it has one.
        path: of the file, from which the file with shared entries is named.

    Raises:
        NoDebugInfoError: the file has none.
    """

    def __init__(
        self,
        stream: IO[bytes],
        open_part: OpenPart = lambda _: None,
        package: str = "",
        path: str = "",
    ) -> None:
        elf = ELFFile(stream)
        if not elf.has_dwarf_info(strict=True):
            raise NoDebugInfoError("no DWARF")
        self._dwarf = elf.get_dwarf_info(follow_links=False)
        self._whole = _Types(self._dwarf, None, SharedEntries(elf, open_part, path).find)
        self._split = SplitUnits(self._dwarf, open_part, package)
        self._units: dict[int, _UnitReader] = {}
        self._globals = _Globals()
        self._ranges = sorted(self._unit_ranges(), key=lambda found: found[:2])

    def function(self, address: int) -> Function | None:
        """Return the function that has an address.

        Raises:
            NoDebugInfoError: its unit is in a file of its own (split DWARF), which is missing.
        """
        unit = self._unit_at(address)
        if unit is None:
            return None
        functions = self._read(unit).functions
        number = bisect_right(functions, address, key=lambda function: function.start) - 1
        function = functions[number] if number >= 0 else None
        return function if function is not None and address < function.end else None

    def named(self, user: int, tag: str, name: str) -> Type | None:
        """Return a type of the unit of the code at `user`: its tag in DWARF, and its name.

        Raises:
            NoDebugInfoError: its unit is in a file of its own (split DWARF), which is missing.
        """
        unit = self._unit_at(user)
        return None if unit is None else self._read(unit).named(tag, name)

    def line_address(self, source: str, line: int, column: int = 0) -> int | None:
        """Return the lowest address of a line of a source file; None if it has no code.

        Args:
            source: the file, or the end of its path.
            line: its number.
            column: 0 for the whole line.
        """
        addresses = (
            entry.state.address
            for unit in self._whole.units
            for entry in self._lines_of(unit, source)
            if entry.state.line == line and column in (0, entry.state.column)
        )
        return min(addresses, default=None)

    def _lines_of(self, unit: Unit, source: str) -> Iterator[Any]:
        """Yield the rows of a unit's line table that belong to a source file."""
        program: Any = self._dwarf.line_program_for_CU(self._dwarf.get_CU_at(unit.start))
        files = program["file_entry"] if program is not None else ()
        if not any(_is_file(entry.name, source) for entry in files):
            return
        first = 0 if program["version"] >= _FIRST_FILE_IS_0 else 1
        for entry in program.get_entries():
            state = entry.state
            if state is not None and not state.end_sequence:
                number = state.file - first
                if 0 <= number < len(files) and _is_file(files[number].name, source):
                    yield entry

    def variable(self, user: int, address: int) -> Global | None:
        """Return the global variable at an address, first of the unit of the code at `user`.

        Then it is a variable of the units that have been read.
        """
        unit = self._unit_at(user)
        found = None if unit is None else self._read(unit).variables.at(address)
        return found or self._globals.at(address)

    def _unit_at(self, address: int) -> Unit | None:
        number = bisect_right(self._ranges, address, key=lambda one: one[0]) - 1
        for start, end, unit in reversed(self._ranges[max(0, number - 8) : number + 1]):
            if start <= address < end:
                return unit
        return None

    def _unit_ranges(self) -> Iterator[tuple[int, int, Unit]]:
        """Yield the addresses of units: from .debug_aranges, which needs none of their entries.

        Clang does not write it, and units without code are not in it.
        """
        units = {unit.start: unit for unit in self._whole.units}
        table, listed = self._dwarf.debug_aranges_sec, set()
        for start, end, place in () if table is None else read_ranges(all_of(table)):
            if place in units:
                listed.add(place)
                yield start, end, units[place]
        for offset in units.keys() - listed:
            entries = self._whole.entries(units[offset])
            for start, end in _extents(entries.top, entries.tables, _base(entries.top)):
                if start < end:
                    yield start, end, units[offset]

    def _read(self, unit: Unit) -> _UnitReader:
        known = self._units.get(unit.start)
        if known is None:
            sections, skeleton = self._whole, self._whole.entries(unit)
            entries = skeleton
            if is_skeleton(skeleton):
                tables = self._split.find(skeleton)
                sections = _Types(tables.sections, tables)
                entries = sections.identified(identity_of(skeleton))
            top = entries.top
            language = top.get("DW_AT_language")
            is_c = language is not None and language.value in _C
            known = _UnitReader(sections, entries, _base(skeleton.top), self._globals)
            known.read(top.iter_children(), () if is_c else _SPACES)
            known.functions.sort(key=lambda function: function.start)
            self._units[unit.start] = known
        return known


def _is_file(name: bytes, source: str) -> bool:
    """Return True if a name of a line table is the last part of a path."""
    path = name.decode("utf-8", "replace")
    return f"/{path}".endswith(f"/{source}") or source.endswith(f"/{path}")


def _base(top: Entry) -> int:
    low = top.get("DW_AT_low_pc")
    return low.value if low is not None else 0


class _Types(Section):
    """The units of a file, with the types among their entries."""

    @cached_property
    def types(self) -> TypeReader:
        """The types that were read."""
        return TypeReader()

    def identified(self, identity: int) -> Entries:
        """Return the entries of the unit that has the ID of a skeleton.

        Raises:
            MissingPartError: there is none.
        """
        for unit in self.units:
            entries = self.entries(unit)
            if identity_of(entries) == identity:
                return entries
        raise MissingPartError("split DWARF: the .dwo file of the unit is of another build")


def _with_imported(top: Entry, depth: int = 4) -> Iterator[Entry]:
    """Yield the entries of a unit and of the units that it imports; dwz(1) makes such units."""
    for entry in top.iter_children():
        if entry.tag == "DW_TAG_imported_unit" and depth:
            yield from _with_imported(entry.follow("DW_AT_import"), depth - 1)
        else:
            yield entry


def _extents(entry: Entry, of: Tables, base: int) -> Iterator[tuple[int, int]]:
    """Yield the addresses [start, end) of a function, block or unit.

    Args:
        entry: the function, block or unit.
        of: the tables of its unit.
        base: the address that the unit's ranges count from.
    """
    low, high = (entry.get(f"DW_AT_{name}_pc") for name in ("low", "high"))
    ranges = entry.get("DW_AT_ranges")
    if low is not None and high is not None:
        length = high.value - (low.value if high.form.startswith("addr") else 0)
        yield low.value, low.value + length
    elif ranges is not None:
        yield from ranges_at(of, ranges.value, base)


class _UnitReader:
    """Reads one unit into its functions and its global variables.

    Attributes:
        functions: in the order of their entries.
        variables: by address; static ones of a function once its variables were read.
    """

    def __init__(self, sections: _Types, unit: Entries, base: int, known: _Globals) -> None:
        self._types, self._unit, self._base = sections.types, unit, base
        self.functions: list[Function] = []
        self.variables, self._known = _Globals(), known

    def read(self, entries: Iterable[Entry], spaces: Container[str]) -> None:
        """Read entries of a unit, and the ones inside of `spaces`: namespaces and classes."""
        for entry in entries:
            if entry.tag == "DW_TAG_subprogram":
                extents = _extents(entry, self._unit.tables, self._base)
                self.functions += (Function(start, end, self, entry) for start, end in extents)
            elif entry.tag == "DW_TAG_variable":
                list(self._places(entry))
            elif entry.tag in spaces:
                self.read(entry.iter_children(), spaces)

    def type_of(self, entry: Entry) -> Type | None:
        """Return the type of a variable, or of the result of a function; None is void."""
        return self._types.type_of(origin(entry))

    def variables_of(self, entry: Entry) -> tuple[Location, ...]:
        """Return the places of a function's variables."""
        return tuple(self._variables(entry))

    def parameters_of(self, entry: Entry) -> tuple[tuple[str, Type | None], ...]:
        """Return the names and the types of a function's parameters."""
        return tuple(
            (name_of_entry(child), self.type_of(child))
            for child in origin(entry).iter_children()
            if child.tag == "DW_TAG_formal_parameter"
        )

    def unusual_call_of(self, entry: Entry) -> str:
        """Return the reason why callers pass parameters otherwise than in C."""
        language = self._unit.top.get("DW_AT_language")
        if language is None or language.value not in (*_C, *_CPP):
            return "its language is neither C nor C++"
        convention = entry.get("DW_AT_calling_convention")
        if convention is not None and convention.value == _NOCALL:
            return "the compiler changed its parameters"
        result = bare(self.type_of(entry))
        if result is not None and result.kind in (Kind.STRUCT, Kind.UNION):
            return "it returns a struct, perhaps through a pointer that is its first parameter"
        return ""

    def named(self, tag: str, name: str) -> Type | None:
        """Return the complete type of the unit that has a tag such as DW_TAG_structure_type."""
        for entry in _with_imported(self._unit.top):
            is_complete = entry.tag == tag and not entry.has("DW_AT_declaration")
            if is_complete and name_of_entry(entry) == name:
                return self._types.read(entry)
        return None

    def frame_base_of(self, entry: Entry) -> tuple[str, int] | None:
        """Return the operation that the stack offsets of a function count from."""
        bases = [expression for _, _, expression in self._lists(entry, "DW_AT_frame_base")]
        return parse_single(bases[0]) if len(bases) == 1 else None

    def _variables(self, entry: Entry, depth: int = 0) -> Iterator[Location]:
        for child in entry.iter_children():
            if child.tag in _VARIABLES:
                for place in self._places(child):
                    yield from self._within(place._replace(depth=depth), entry)
            elif child.tag in _BLOCKS:
                yield from self._variables(child, depth + 1)

    def _within(self, place: Location, block: Entry) -> Iterator[Location]:
        """Yield a variable's place, while its block runs if it does not say when it is valid."""
        if not place.depth or place.end != _END:
            yield place
            return
        for start, end in _extents(block, self._unit.tables, self._base):
            yield place._replace(start=start, end=end)

    def _places(self, entry: Entry) -> Iterator[Location]:
        """Yield the places of a variable; note those at a fixed address."""
        for start, end, expression in self._lists(entry, "DW_AT_location"):
            place = parse_single(expression)
            if place is None:
                yield from self._pieces(entry, start, end, expression)
                continue
            name, number = place
            if name == "DW_OP_addrx":
                number = self._unit.tables.address(number)
            if name in ("DW_OP_addr", "DW_OP_addrx"):
                fixed = Global(number, name_of_entry(entry), self.type_of(entry))
                self.variables.add(fixed)
                self._known.add(fixed)
            else:
                of = self.type_of(entry)
                yield Location(start, end, name, number, name_of_entry(entry), of)

    def _pieces(self, entry: Entry, start: int, end: int, expression: bytes) -> Iterator[Location]:
        """Yield the registers that have parts of a variable, such as the pointer of a slice."""
        parts = parse_pieces(expression)
        of = self.type_of(entry) if parts else None
        for register, offset in parts:
            member = find(of, offset, _WORD)
            if member.type is not None and not member.within and offset < byte_size(of):
                name = name_of_entry(entry)
                yield Location(start, end, "DW_OP_reg", register, name, member.type)

    def _lists(self, entry: Entry, name: str) -> Iterator[tuple[int, int, bytes]]:
        """Yield ranges of addresses with an expression each."""
        attribute = entry.get(name)
        if attribute is None:
            return
        if attribute.form == "exprloc":
            yield 0, _END, attribute.value
        elif attribute.form in ("sec_offset", "loclistx"):
            yield from list_at(self._unit.tables, attribute.value, self._base)
