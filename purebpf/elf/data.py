"""Global variables: each data section becomes an ARRAY map with one value, the section's image.

The configuration values that the object declares with `__kconfig` also become one: they are only in
BTF, in no section of the file, and are zero until the object is loaded. Source: libbpf,
bpf_object__init_internal_map; kernel 5.2 (global data: commit d8eca5bbb2be, "bpf: implement
lookup-free direct value access for maps"), 5.5 (BPF_F_MMAPABLE: commit fc9702273e2e).
"""

from __future__ import annotations

from purebpf.btf.types.kinds import Datasec, Linkage, Var
from purebpf.elf.btf_repair import KCONFIG, Repaired
from purebpf.elf.container import ElfObject, Section
from purebpf.spec import MapSpec, VariableSpec
from purebpf.tuples import NamedTuple

ARRAY = 2
BPF_F_RDONLY_PROG = 1 << 7
BPF_F_MMAPABLE = 1 << 10

_KINDS = {".data": "SHT_PROGBITS", ".rodata": "SHT_PROGBITS", ".bss": "SHT_NOBITS"}


class Data(NamedTuple):
    """Data maps by section index, and the variables in them by name."""

    maps: dict[int, MapSpec]
    variables: dict[str, VariableSpec]


def read_data(types: Repaired | None, elf: ElfObject) -> Data:
    """The maps of .data*, .rodata* and .bss*, and the global variables that BTF describes.

    A section that BTF does not describe (.rodata.str1.1: string literals) has no variables.

    Raises:
        FormatError: two data sections, or two variables, of one name.
    """
    maps: dict[int, MapSpec] = {}
    variables: dict[str, VariableSpec] = {}
    names: set[str] = set()
    for section in elf.sections:
        if not _is_data(section):
            continue
        if section.name in names:
            raise elf.error(f"section {section.name}", "occurs twice")
        names.add(section.name)
        type_id, declared = variables_in(types, section.name)
        maps[section.number] = _map(elf, section, type_id, mappable=bool(declared))
        for variable in declared:
            if variables.setdefault(variable.name, variable) is not variable:
                raise elf.error(f"variable {variable.name}", "is defined twice")
    return Data(maps, variables)


def _is_data(section: Section) -> bool:
    stem = "." + section.name[1:].partition(".")[0]
    return section.name.startswith(".") and section.size > 0 and _KINDS.get(stem) == section.type


def read_kconfig(types: Repaired | None) -> tuple[MapSpec, list[VariableSpec]] | None:
    """The map of configuration values, and its variables; None when the object has none."""
    type_id, variables = variables_in(types, KCONFIG)
    if types is None or not variables:
        return None
    size = types.btf.sizeof(type_id)
    return _data_map(KCONFIG, bytes(size), type_id, read_only=True, mappable=True), variables


def variables_in(types: Repaired | None, section: str) -> tuple[int, list[VariableSpec]]:
    """The id of a section's DATASEC, or 0, and the variables that are not static or hidden."""
    if types is None or section not in types.datasecs:
        return 0, []
    btf, type_id = types.btf, types.datasecs[section]
    datasec = btf.type(type_id)
    assert isinstance(datasec, Datasec)
    variables = []
    for entry in datasec.entries:
        variable = btf.type(entry.type_id)
        if isinstance(variable, Var) and variable.linkage is Linkage.GLOBAL:
            variables.append(
                VariableSpec(variable.name, section, entry.offset, entry.size, variable.type_id)
            )
    return type_id, variables


def _map(elf: ElfObject, section: Section, type_id: int, *, mappable: bool) -> MapSpec:
    contents = bytes(elf.contents(section)) or bytes(section.size)
    read_only = section.name.startswith(".rodata")
    return _data_map(section.name, contents, type_id, read_only=read_only, mappable=mappable)


def _data_map(
    name: str, contents: bytes, type_id: int, *, read_only: bool, mappable: bool
) -> MapSpec:
    return MapSpec(
        name=name,
        type=ARRAY,
        key_size=4,
        value_size=len(contents),
        max_entries=1,
        flags=BPF_F_RDONLY_PROG * read_only | BPF_F_MMAPABLE * mappable,
        value_type_id=type_id,
        section=name,
        contents=contents,
        frozen=read_only,
    )
