"""The report of `purebpf inspect`, as data. Pure: a spec and target types in, a report out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from purebpf.abi.bpf import bpf_core_relo_kind, bpf_map_type, bpf_prog_type
from purebpf.abi.instruction import INSN_SIZE
from purebpf.abi.names import member_name
from purebpf.btf.codec.codecs import variable_codec
from purebpf.btf.core.matching import CoreMatcher, CoreResult
from purebpf.btf.types.parse import Btf
from purebpf.btf.types.spelling import spell
from purebpf.errors import PurebpfError
from purebpf.relocate.core import apply_core
from purebpf.spec import (
    FunctionSpec,
    MapSpec,
    ObjectSpec,
    ProgramSpec,
    RelocationKind,
    VariableSpec,
)
from purebpf.tuples import NamedTuple

__all__ = ["CoreLine", "ExternLine", "GlobalLine", "MapLine", "ProgramLine", "Report", "describe"]

_OF_FUNCTIONS = (RelocationKind.CALL, RelocationKind.FUNCTION)
_OF_MAPS = (RelocationKind.MAP, RelocationKind.DATA)


class ProgramLine(NamedTuple):
    """A program: `instructions` with its subprograms, `functions` are those, in no order.

    `jump_tables` is how many its switches jump through, which needs Linux 6.19.
    """

    name: str
    section: str
    type: str
    instructions: int
    autoload: bool
    functions: tuple[str, ...]
    maps: tuple[str, ...]
    externs: tuple[str, ...]
    jump_tables: int


class MapLine(NamedTuple):
    """A map; `key` and `value` are types in C, or "" where the object does not say."""

    name: str
    type: str
    key: str
    key_size: int
    value: str
    value_size: int
    max_entries: int
    flags: int


class GlobalLine(NamedTuple):
    """A global variable and its first value, as JSON can say it (bytes in hexadecimal)."""

    name: str
    type: str
    map: str
    offset: int
    size: int
    value: Any


class ExternLine(NamedTuple):
    """A symbol that the kernel has to supply; `here` is this kernel's answer in words, "" if not
    asked.
    """

    name: str
    kind: str
    type: str
    weak: bool
    here: str


class ReferenceLine(NamedTuple):
    """An instruction that refers to a map, a data section, a function or a kernel symbol."""

    function: str
    instruction: int
    kind: str
    target: str
    offset: int


class CoreLine(NamedTuple):
    """A CO-RE relocation and its answer for the target kernel.

    Attributes:
        function: the function's key in the object.
        instruction: counted from the function's start.
        kind: as in enum bpf_core_relo_kind, without the prefix: "field_byte_offset".
        what: the requested information, as C.
        compiled: the number that the compiler wrote.
        value: the number here; None when there is none.
        found: the answer's source, as C and type id; "" when there is none.
        poisoned: the instruction becomes a call that the verifier refuses when it can be reached.
        answer: all of that in words.
    """

    function: str
    instruction: int
    kind: str
    what: str
    compiled: int | None
    value: int | None
    found: str
    poisoned: bool
    answer: str


class Report(NamedTuple):
    """Everything; `targets` are the types that CO-RE relocations were matched against."""

    source: str
    byteorder: str
    license: str
    types: int
    targets: tuple[str, ...]
    notes: tuple[str, ...]
    programs: tuple[ProgramLine, ...]
    maps: tuple[MapLine, ...]
    globals: tuple[GlobalLine, ...]
    externs: tuple[ExternLine, ...]
    references: tuple[ReferenceLine, ...]
    core: tuple[CoreLine, ...]


def describe(
    spec: ObjectSpec,
    targets: Sequence[Btf] | None,
    *,
    externs: Mapping[str, str] | None = None,
    notes: Iterable[str] = (),
) -> Report:
    """Describe an object.

    Args:
        spec: the object.
        targets: the types to match against, vmlinux first; None matches nothing.
        externs: the kernel's answer to each extern, in words.
        notes: further remarks for the reader.
    """
    return Report(
        source=spec.source,
        byteorder=spec.byteorder,
        license=spec.license,
        types=len(spec.btf) if spec.btf is not None else 0,
        targets=tuple(target.source for target in targets or ()),
        notes=tuple(notes),
        programs=tuple(_program(spec, program) for program in spec.programs.values()),
        maps=tuple(_map(spec, map_spec) for map_spec in spec.maps.values()),
        globals=tuple(
            _global(spec, variable)
            for variable in spec.variables.values()
            if variable.name not in spec.externs
        ),
        externs=tuple(_externs(spec, externs or {})),
        references=tuple(_references(spec)),
        core=tuple(_core(spec, targets)) if targets is not None else (),
    )


def _program(spec: ObjectSpec, program: ProgramSpec) -> ProgramLine:
    functions = _reachable_functions(spec, program.function)
    references = [r for key in functions for r in spec.functions[key].relocations]
    maps = dict.fromkeys(r.target for r in references if r.kind in _OF_MAPS)
    externs = dict.fromkeys(r.target for r in references if r.kind is RelocationKind.EXTERN)
    return ProgramLine(
        name=program.name,
        section=program.section,
        type=member_name(bpf_prog_type, program.type, prefix="BPF_PROG_TYPE_", unknown="").lower(),
        instructions=sum(len(spec.functions[key].code) for key in functions) // INSN_SIZE,
        autoload=program.autoload,
        functions=tuple(key for key in functions if key != program.function),
        maps=tuple(maps),
        externs=tuple(externs),
        jump_tables=sum(len(spec.functions[key].jump_tables) for key in functions),
    )


def _reachable_functions(spec: ObjectSpec, entry: str) -> list[str]:
    """The functions that a program consists of, itself first."""
    reachable = [entry]
    for key in reachable:
        for relocation in spec.functions[key].relocations:
            if relocation.kind in _OF_FUNCTIONS and relocation.target not in reachable:
                reachable.append(relocation.target)
    return reachable


def _map(spec: ObjectSpec, map_spec: MapSpec) -> MapLine:
    def spell_type(type_id: int) -> str:
        return spell(spec.btf, type_id) if spec.btf is not None and type_id else ""

    return MapLine(
        name=map_spec.name,
        type=member_name(bpf_map_type, map_spec.type, prefix="BPF_MAP_TYPE_", unknown="").lower(),
        key=spell_type(map_spec.key_type_id),
        key_size=map_spec.key_size,
        value="" if map_spec.section else spell_type(map_spec.value_type_id),
        value_size=map_spec.value_size,
        max_entries=map_spec.max_entries,
        flags=map_spec.flags,
    )


def _global(spec: ObjectSpec, variable: VariableSpec) -> GlobalLine:
    assert spec.btf is not None  # variables come from BTF
    contents = spec.maps[variable.map].contents
    raw = contents[variable.offset : variable.offset + variable.size]
    try:
        value = _plain(variable_codec(spec.btf, variable.type_id, variable.name).decode(raw))
    except PurebpfError:  # a type that has no values, such as a map of function pointers
        value = raw.hex()
    return GlobalLine(
        variable.name,
        spell(spec.btf, variable.type_id),
        variable.map,
        variable.offset,
        variable.size,
        value,
    )


def _plain(value: Any) -> Any:
    """Return a decoded value as types that JSON has."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if hasattr(value, "_asdict"):
        return {name: _plain(item) for name, item in value._asdict().items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, bool | str | float) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    names = getattr(type(value), "__slots__", ())
    return {name: _plain(getattr(value, name)) for name in names}


def _externs(spec: ObjectSpec, here: Mapping[str, str]) -> Iterator[ExternLine]:
    for extern in spec.externs.values():
        assert spec.btf is not None
        kind, text = "variable", spell(spec.btf, extern.type_id)
        if extern.section == ".kconfig":
            kind = "configuration value"
        elif spec.btf.kind(extern.type_id).name == "FUNC":
            kind, text = "function", ""
        elif not spec.btf.resolve(extern.type_id):
            kind = "address"
        yield ExternLine(extern.name, kind, text, extern.weak, here.get(extern.name, ""))


def _references(spec: ObjectSpec) -> Iterator[ReferenceLine]:
    for key, function in spec.functions.items():
        for relocation in function.relocations:
            yield ReferenceLine(
                key,
                relocation.offset // INSN_SIZE,
                relocation.kind.value,
                relocation.target,
                relocation.addend,
            )


def _core(spec: ObjectSpec, targets: Sequence[Btf]) -> Iterator[CoreLine]:
    if spec.btf is None:
        return
    matcher = CoreMatcher(spec.btf, targets)
    for key, function in spec.functions.items():
        for number, relocation in enumerate(function.core_relocations):
            yield _core_line(spec, key, function, number, _result(matcher, relocation))


def _result(matcher: CoreMatcher, relocation: Any) -> CoreResult | PurebpfError:
    try:
        return matcher.match(relocation)
    except PurebpfError as error:
        return error


def _core_line(
    spec: ObjectSpec,
    key: str,
    function: FunctionSpec,
    number: int,
    result: CoreResult | PurebpfError,
) -> CoreLine:
    relocation = function.core_relocations[number]
    slot = relocation.offset // INSN_SIZE
    kind = member_name(
        bpf_core_relo_kind, relocation.kind, prefix="BPF_CORE_", unknown="kind"
    ).lower()
    if not isinstance(result, CoreResult):
        text = f"the object would not load: {result}"
        return CoreLine(key, slot, kind, "", None, None, "", poisoned=False, answer=text)
    alone = function._replace(core_relocations=(relocation,))
    try:
        patched = apply_core(alone, [result], byteorder=spec.byteorder, source=spec.source)
        poisoned, text = bool(patched.poisoned), result.explain()
    except PurebpfError as error:
        poisoned, text = False, f"the object would not load: {error}"
    if poisoned:
        text = f"poisoned: {result.explain_poison()}"
    return CoreLine(
        function=key,
        instruction=slot,
        kind=kind,
        what=result.what,
        compiled=result.local_value,
        value=None if result.problem or poisoned else result.value,
        found=result.found,
        poisoned=poisoned,
        answer=text,
    )
