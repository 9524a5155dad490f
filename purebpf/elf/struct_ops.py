"""struct_ops maps: variables of `.struct_ops` and `.struct_ops.link`, tables of functions.

Each is a struct of the kernel's with data members that the object initialises, and function
pointers that are relocations to its programs. Its MapSpec has the struct's bytes as `contents`,
with zeros for the pointers, and as `initial` (place of the member, name of the program). Source:
libbpf, init_struct_ops_maps and bpf_object__collect_st_ops_relos; kernel 5.6 (commit 27ae7997a661),
links 6.4 (commit 68b04864ca42).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from purebpf.btf.types.kinds import Datasec, Struct, Var
from purebpf.btf.types.parse import Btf
from purebpf.btf.types.pointers import is_function_pointer
from purebpf.elf.btf_repair import Repaired
from purebpf.elf.container import ElfObject, Section
from purebpf.elf.functions import Functions
from purebpf.elf.relocations import RawRelocation
from purebpf.errors import LinkError
from purebpf.spec import MapSpec, ProgramSpec

__all__ = ["SECTIONS", "read_struct_ops"]

STRUCT_OPS = 26
BPF_F_LINK = 1 << 13
SECTIONS = frozenset({".struct_ops", ".struct_ops.link"})

_POINTER = 8


def read_struct_ops(
    types: Repaired | None,
    elf: ElfObject,
    raw: Mapping[int, list[RawRelocation]],
    functions: Functions,
    programs: Mapping[str, ProgramSpec],
) -> Iterator[MapSpec]:
    """Read the struct_ops maps; maps of `SEC("?.struct_ops")` are not created by default.

    Raises:
        FormatError: a variable that is not a struct with a name, or a pointer elsewhere than in it.
        LinkError: a member gets a value other than a program.
    """
    for section in elf.sections:
        if section.name.removeprefix("?") not in SECTIONS or not section.size:
            continue
        if types is None or section.name not in types.datasecs:
            raise elf.error(f"section {section.name}", "has no BTF; compile with -g")
        datasec = types.btf.type(types.datasecs[section.name])
        assert isinstance(datasec, Datasec)
        relocations = {relocation.offset: relocation for relocation in raw.get(section.number, [])}
        for entry in datasec.entries:
            variable = types.btf.type(entry.type_id)
            assert isinstance(variable, Var)  # checked when the section was repaired
            table = _TableVariable(types.btf, elf, section, variable, entry.offset)
            yield table.read(relocations, functions, programs)
        if relocations:
            where = f"section {section.name}+{min(relocations):#x}"
            raise elf.error(where, "a pointer that is not a function's member")


class _TableVariable:
    """One variable."""

    def __init__(
        self, btf: Btf, elf: ElfObject, section: Section, variable: Var, offset: int
    ) -> None:
        self._btf = btf
        self._elf = elf
        self._section = section
        self._name = variable.name
        self._offset = offset
        self._type_id = btf.resolve(variable.type_id)
        btf_struct = btf.type(self._type_id)
        if not isinstance(btf_struct, Struct) or not btf_struct.name:
            raise elf.error(f"struct_ops {variable.name}", "is not a named struct")
        self._struct = btf_struct

    def read(
        self,
        relocations: dict[int, RawRelocation],
        functions: Functions,
        programs: Mapping[str, ProgramSpec],
    ) -> MapSpec:
        """Its map; takes its own out of `relocations`, which are by offset in the section."""
        end = self._offset + self._struct.size
        contents = bytearray(self._elf.contents(self._section)[self._offset : end])
        if len(contents) != self._struct.size:
            raise self._elf.error(f"struct_ops {self._name}", "goes beyond its section")
        given: list[tuple[int, str]] = []
        for index, member in enumerate(self._struct.members):
            at = member.bit_offset // 8
            if not is_function_pointer(self._btf, member.type_id):
                continue
            if at + _POINTER > len(contents):
                where = f"member {member.name} of struct_ops {self._name}"
                raise self._elf.error(where, "goes beyond the struct")
            if (relocation := relocations.pop(self._offset + at, None)) is not None:
                program = self._program(relocation, bytes(contents[at : at + _POINTER]), functions)
                if program not in programs:
                    raise self._unfit(relocation, member.name)
                given.append((index, program))
                contents[at : at + _POINTER] = bytes(_POINTER)
        section = self._section.name
        return MapSpec(
            name=self._name,
            type=STRUCT_OPS,
            key_size=4,
            value_size=self._struct.size,
            max_entries=1,
            flags=BPF_F_LINK if section.endswith(".link") else 0,
            value_type_id=self._type_id,
            initial=tuple(given),
            contents=bytes(contents),
            autocreate=not section.startswith("?"),
        )

    def _program(self, relocation: RawRelocation, stored: bytes, functions: Functions) -> str:
        """The name of the program that is pointed to, or "".

        The relocation's type does not matter: clang 12 and older write R_BPF_64_64, newer ones
        R_BPF_64_ABS64.
        """
        addend = relocation.addend
        if addend is None:
            (addend,) = struct.unpack(self._elf.prefix + "q", stored)
        symbol = relocation.symbol
        function = functions.at(symbol.section, symbol.value + addend)
        return function.key if function is not None else ""

    def _unfit(self, relocation: RawRelocation, member: str) -> LinkError:
        symbol = relocation.symbol.name or "a nameless symbol"
        problem = f"member {member} of struct_ops {self._name} needs a program, which this is not"
        return LinkError(self._elf.source, symbol, problem)
