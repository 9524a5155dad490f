"""Completes clang's BTF with the information that the kernel requires.

- ELF symbols decide where variables are. clang leaves a DATASEC with size 0 and each global
  variable at offset 0; `bpftool gen object` (libbpf's linker) completes it, but leaves a variable
  that the first object declares and a later one defines at the offset of the declaration, and a
  weak one that a strong one replaces at the offset of the weak one.
- A hidden global variable or function is global in BTF; the kernel would verify the function alone,
  without the facts that its callers know, and libbpf would expose the variable.
- The declarations in .ksyms and .kconfig have no storage, and the kernel takes no extern VAR:
  they become variables, `int`s four bytes apart for .ksyms, laid out by alignment for .kconfig.

Each is changed as libbpf changes it (btf_fixup_datasec, bpf_object__collect_externs).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from purebpf.btf.types.kinds import (
    Array,
    Datasec,
    DatasecEntry,
    Enum,
    Enum64,
    Func,
    Int,
    Kind,
    Linkage,
    Var,
)
from purebpf.btf.types.parse import Btf, ids_of
from purebpf.elf.btf_editor import BtfEditor
from purebpf.elf.container import STB_LOCAL, STT_OBJECT, ElfObject, Section
from purebpf.errors import FormatError, LinkError, NotSupportedError
from purebpf.spec import ExternSpec
from purebpf.tuples import NamedTuple

_KSYMS = ".ksyms"
KCONFIG = ".kconfig"
_VALUE_LIMIT = 1 << 16
"""Bytes of one configuration value."""


class Repaired(NamedTuple):
    """The BTF to upload, the externs that it no longer declares, and the DATASEC ids by name."""

    btf: Btf
    externs: dict[str, ExternSpec]
    datasecs: dict[str, int]


def repair(btf: Btf, elf: ElfObject, hidden_functions: Iterable[int]) -> Repaired:
    """Complete `btf` from the ELF file; `hidden_functions` are ids of FUNCs to make static.

    Raises:
        FormatError: BTF and ELF disagree about a section or a variable.
        LinkError: a variable of a map or data section is in another object.
        NotSupportedError: a .kconfig variable of a type that configuration values cannot have.
    """
    repairer = _Repairer(btf, elf)
    for type_id in hidden_functions:
        repairer.editor.set_function_linkage(type_id, Linkage.STATIC)
    for type_id in ids_of(btf, Kind.DATASEC):
        repairer.repair_datasec(type_id)
    return Repaired(repairer.editor.finish(), repairer.externs, repairer.datasecs)


class _Repairer:
    """One BTF being repaired."""

    def __init__(self, btf: Btf, elf: ElfObject) -> None:
        self.editor = BtfEditor(btf)
        self.externs: dict[str, ExternSpec] = {}
        self.datasecs: dict[str, int] = {}
        self._btf = btf
        self._elf = elf
        self._symbols = {s.name: s for s in elf.symbols if s.binding != STB_LOCAL}
        self._local: dict[tuple[int, str], list[int]] = defaultdict(list)
        for symbol in elf.symbols:
            if symbol.binding == STB_LOCAL and symbol.type == STT_OBJECT:
                self._local[symbol.section, symbol.name].append(symbol.value)

    def repair_datasec(self, type_id: int) -> None:
        """Repair a DATASEC and the variables it lists."""
        datasec = self._btf.type(type_id)
        assert isinstance(datasec, Datasec)
        if self.datasecs.setdefault(datasec.name, type_id) != type_id:
            raise self._error(datasec, "occurs twice")
        if datasec.name == _KSYMS:
            self._note_externs(datasec)
            self._rewrite_ksyms(type_id, datasec)
        elif datasec.name == KCONFIG:
            self._note_externs(datasec)
            self._rewrite_kconfig(type_id, datasec)
        else:
            self._complete(type_id, datasec)

    def _error(self, datasec: Datasec, problem: str) -> FormatError:
        return FormatError(self._btf.source, f"DATASEC {datasec.name}", problem)

    def _variable(self, datasec: Datasec, type_id: int) -> Var:
        variable = self._btf.type(type_id)
        if not isinstance(variable, Var):
            raise self._error(datasec, f"type {type_id} is not a variable")
        return variable

    def _complete(self, type_id: int, datasec: Datasec) -> None:
        """Give a DATASEC its size and offsets, and make its hidden variables static."""
        variables = [self._variable(datasec, entry.type_id) for entry in datasec.entries]
        for variable in variables:
            self._must_be_here(variable, datasec.name)
        section = self._elf.find(datasec.name)
        if section is None:
            raise self._error(datasec, "the section does not exist")
        entries = []
        static = self._static_offsets(section, datasec, variables)
        for entry, variable in zip(datasec.entries, variables, strict=True):
            if variable.linkage is Linkage.GLOBAL:
                symbol = self._symbols.get(variable.name)
                if symbol is None or symbol.section != section.number:
                    raise self._error(datasec, f"variable {variable.name} has no symbol")
                entry = entry._replace(offset=symbol.value)
                if symbol.hidden:
                    self.editor.set_variable_linkage(entry.type_id, Linkage.STATIC)
            else:
                entry = entry._replace(offset=static.get(entry, entry.offset))
            if entry.offset + entry.size > section.size:
                place = f"{entry.size} bytes at {entry.offset} of {section.size}"
                raise self._error(datasec, f"variable {variable.name} does not fit: {place}")
            entries.append(entry)
        self.editor.set_datasec(type_id, section.size, entries)

    def _static_offsets(
        self, section: Section, datasec: Datasec, variables: Iterable[Var]
    ) -> dict[DatasecEntry, int]:
        """Return the offsets of static variables, by their entries, as local symbols have them.

        Several objects may each have one of a name: the linkers keep their order. A variable
        without a symbol, as after stripping, is not among the answers.
        """
        entries: dict[str, list[DatasecEntry]] = defaultdict(list)
        for entry, variable in zip(datasec.entries, variables, strict=True):
            if variable.linkage is Linkage.STATIC:
                entries[variable.name].append(entry)
        offsets: dict[DatasecEntry, int] = {}
        for name, same_name in entries.items():
            symbols = sorted(self._local[section.number, name])
            if len(symbols) == len(same_name):
                ordered = sorted(same_name, key=lambda entry: entry.offset)
                offsets |= zip(ordered, symbols, strict=True)
        return offsets

    def _must_be_here(self, variable: Var, section: str) -> None:
        if variable.linkage is Linkage.EXTERN:
            problem = (
                f"is declared in section {section} and defined in another object; link the two: "
                "bpftool gen object BOTH.o ONE.o OTHER.o"
            )
            raise LinkError(self._elf.source, variable.name, problem)

    def _note_externs(self, datasec: Datasec) -> None:
        for entry in datasec.entries:
            declaration = self._btf.type(entry.type_id)
            if not isinstance(declaration, Var | Func):
                raise self._error(datasec, f"type {entry.type_id} is not a variable or function")
            if declaration.name in self.externs:
                raise self._error(datasec, f"{declaration.name} is declared twice")
            symbol = self._symbols.get(declaration.name)
            type_id = entry.type_id if isinstance(declaration, Func) else declaration.type_id
            weak = symbol is not None and symbol.weak
            self.externs[declaration.name] = ExternSpec(
                declaration.name, datasec.name, type_id, weak
            )

    def _rewrite_ksyms(self, type_id: int, datasec: Datasec) -> None:
        """Turn each kernel symbol into an `int`, and give each kernel function a type to itself."""
        editor, btf = self.editor, self._btf
        integer = _int32(btf) or editor.add_int(editor.add_string("int"))
        name = dummy = 0
        named: set[int] = set()
        entries = []
        for position, entry in enumerate(datasec.entries):
            target = entry.type_id
            declaration = btf.type(target)
            if isinstance(declaration, Func):
                name = name or editor.add_string("dummy_ksym")
                dummy = dummy or editor.add_variable(name, integer)
                editor.set_function_linkage(target, Linkage.GLOBAL)
                if (
                    btf.kind(declaration.type_id) is Kind.FUNC_PROTO
                    and declaration.type_id not in named
                ):
                    named.add(declaration.type_id)
                    editor.name_parameters(declaration.type_id, name)
                target = dummy
            else:
                editor.set_variable_type(target, integer)
                editor.set_variable_linkage(target, Linkage.GLOBAL)
            entries.append(DatasecEntry(target, 4 * position, 4))
        editor.set_datasec(type_id, 4 * len(entries), entries)

    def _rewrite_kconfig(self, type_id: int, datasec: Datasec) -> None:
        """Lay the configuration values out: by falling alignment, then by size, then by name."""
        values = []
        for entry in datasec.entries:
            variable = self._variable(datasec, entry.type_id)
            size, alignment = _extent(self._btf, variable)
            values.append((-alignment, size, variable.name, entry.type_id))
            self.editor.set_variable_linkage(entry.type_id, Linkage.GLOBAL)
        end = 0
        entries = []
        for minus_alignment, size, _, variable_id in sorted(values):
            offset = end // minus_alignment * minus_alignment  # rounds up: both are negative
            end = offset + size
            entries.append(DatasecEntry(variable_id, offset, size))
        self.editor.set_datasec(type_id, end, entries)


def _int32(btf: Btf) -> int:
    for type_id in ids_of(btf, Kind.INT):
        btf_type = btf.type(type_id)
        if isinstance(btf_type, Int) and btf_type.bits == 32 and btf_type.size == 4:
            return type_id
    return 0


def _extent(btf: Btf, variable: Var) -> tuple[int, int]:
    """Size and alignment of a configuration value: a number, an enum, or an array of char."""
    size = btf.sizeof(variable.type_id)
    btf_type = btf.type(btf.resolve(variable.type_id))
    if isinstance(btf_type, Array):
        btf_type = btf.type(btf.resolve(btf_type.element))
    if (
        not isinstance(btf_type, Int | Enum | Enum64)
        or not 0 < btf_type.size <= size <= _VALUE_LIMIT
    ):
        raise NotSupportedError(
            f"{btf.source}: .kconfig variable {variable.name}",
            f"a configuration value is a number, an enum or a string, not {btf_type.kind.name}",
        )
    return size, btf_type.size
