"""`read_object`: an object file as an ObjectSpec. The rooms' other files each know one part of it.

The result does not depend on the host: the same bytes give the same spec on every machine.
"""

from __future__ import annotations

import re
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, BinaryIO, Protocol, TypeVar, cast, runtime_checkable

from purebpf.abi.sections import SectionMeaning, find_section
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf, with_pointer_size
from purebpf.elf.arena import read_arena
from purebpf.elf.btf_ext import EMPTY, BtfExt, read_btf_ext
from purebpf.elf.btf_repair import Repaired, repair
from purebpf.elf.container import HEADER_SIZE, ElfObject, may_be_object
from purebpf.elf.data import read_data, read_kconfig
from purebpf.elf.functions import Function, Functions, find_functions
from purebpf.elf.jump_tables import JUMP_TABLES
from purebpf.elf.maps import MAPS, read_maps, with_contents
from purebpf.elf.relocations import RawRelocation, Referents, Resolver, read_relocations
from purebpf.elf.struct_ops import read_struct_ops
from purebpf.errors import FormatError
from purebpf.spec import (
    CoreRelocation,
    FunctionSpec,
    LineInfo,
    MapSpec,
    ObjectSpec,
    ProgramSpec,
    RelocationKind,
)

if TYPE_CHECKING:
    from purebpf.elf.legacy_maps import LegacyMaps


@runtime_checkable
class Path(Protocol):
    """os.PathLike[str]; this room does not import os."""

    def __fspath__(self) -> str:
        """The path as a str."""
        ...


@runtime_checkable
class Resource(Protocol):
    """importlib.resources.abc.Traversable, as far as it is needed: a file, maybe in a zip."""

    @property
    def name(self) -> str:
        """The file's name without folders."""
        ...

    def read_bytes(self) -> bytes:
        """All of it."""
        ...


Source = str | Path | Resource | bytes | bytearray | memoryview | BinaryIO

_TEXT = ".text"
_SIZE_LIMIT = 1 << 28
"""Bytes of an object file: objects are kilobytes; the largest that anybody may mean."""
_AT_ONCE = 1 << 16
"""Bytes for one read(2): Python finds memory for all that it is asked for, used or not."""
_POINTER_SIZE = 8
"""Of BPF, whatever an object's types say: libbpf's bpf_object__init_btf() does, too."""
_REFERENCES = (RelocationKind.CALL, RelocationKind.FUNCTION)
_Placed = TypeVar("_Placed", CoreRelocation, LineInfo)


def read_object(source: Source) -> ObjectSpec:
    """Read an object file of clang (`-target bpf -c`) or `bpftool gen object`.

    Args:
        source: a path, the bytes, a binary file, or a file of a package
            (`importlib.resources.files(__name__) / "tool.bpf.o"`), also of one in a zip. Objects
            of either byte order are read; code stays in the order of the file.

    Pointers that are stored in .data or .rodata are not relocated, as in libbpf; a
    RuntimeWarning says so.

    Raises:
        FormatError: the file is not a BPF object, or is damaged; says where. Or it is a named
            pipe, at which open(2) would wait: pass the open file.
        LinkError: it refers to a symbol without a definition and a declaration.
        NotSupportedError: a configuration value of a type that it cannot have.
        OSError: the file cannot be opened.
        TypeError: the source is none of these, or a file that is open as text.
    """
    data, path = _read(source)
    elf = ElfObject(data, path or "bytes")
    functions = find_functions(elf)
    raw = read_relocations(elf)
    types, ext = _types(elf, functions)
    placed = read_maps(types, elf)
    globals_ = read_data(types, elf)
    kconfig, values = read_kconfig(types) or (None, [])
    _warn(elf, raw, globals_.maps)
    maps_index = _number(elf, MAPS)
    legacy = _legacy_maps(elf, types)
    arena = read_arena(types, elf, [placed_map.spec for placed_map in placed])
    referents = Referents(
        functions,
        {
            **{(maps_index, m.offset): m.spec.name for m in placed},
            **(legacy.places if legacy is not None else {}),
        },
        {index: spec.name for index, spec in globals_.maps.items()} | arena.sections,
        types.externs if types is not None else {},
        {value.name: value.offset for value in values},
        _number(elf, JUMP_TABLES),
    )
    specs = _functions(elf, functions, Resolver(elf, raw, referents), ext)
    programs = _programs(functions, specs)
    legacy_maps: Mapping[str, MapSpec] = {}
    if legacy is not None:
        legacy_maps, programs = legacy.with_tail_calls(programs)
    maps = with_contents(arena.fill(placed), raw.get(maps_index, []), elf, functions, programs)
    operations = read_struct_ops(types, elf, raw, functions, programs)
    others = [*operations, *legacy_maps.values(), *globals_.maps.values()]
    others += [kconfig] if kconfig is not None else []
    return ObjectSpec(
        name=_name(path),
        source=elf.source,
        byteorder=elf.byteorder,
        license=_license(elf),
        programs=programs,
        functions=specs,
        maps={**maps, **{spec.name: spec for spec in others}},
        variables={
            **globals_.variables,
            **arena.variables,
            **{value.name: value for value in values},
        },
        externs=referents.externs,
        btf=types.btf if types is not None else None,
    )


def _read(source: Source) -> tuple[bytes, str]:
    """The bytes, and the path or ""."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), ""
    if isinstance(source, str) and "\n" in source:  # C, as bcc takes it; read no further
        return source.encode(), ""
    if isinstance(source, str | Path):
        path = source if isinstance(source, str) else source.__fspath__()
        _refuse_named_pipe(path)
        with open(path, "rb") as file:
            return _contents(file), path
    if isinstance(source, Resource):
        return source.read_bytes(), source.name
    if not callable(getattr(source, "read", None)):
        kind = type(source).__name__
        raise TypeError(f"expected a path, bytes, a binary file or a file of a package, got {kind}")
    name = getattr(source, "name", "")
    return _contents(source), name if isinstance(name, str) else ""


def _refuse_named_pipe(path: str) -> None:
    """Raise FormatError for a pipe that has a name: open(2) would wait until somebody writes."""
    # os.path's own functions: pathlib takes 10 ms to import, a quarter of a first load
    from genericpath import exists, isdir, isfile

    is_device = path.startswith(("/dev/", "/proc/"))
    if not is_device and exists(path) and not isfile(path) and not isdir(path):
        raise FormatError(path, "file", "a named pipe; open it, and pass the open file")


def _contents(file: BinaryIO) -> bytes:
    header = _bytes(file, HEADER_SIZE)
    return header + _bytes(file, _SIZE_LIMIT) if may_be_object(header) else header


def _bytes(file: BinaryIO, size: int) -> bytes:
    """Return so many bytes, or all until the end: a pipe or raw file returns the bytes it has at
    the moment.
    """
    data = bytearray()
    while len(data) < size:
        more = cast("bytes | str", file.read(min(size - len(data), _AT_ONCE)))
        if isinstance(more, str):
            raise TypeError("the file is open as text; open an object file with mode 'rb'")
        if not more:
            break
        data += more
    return bytes(data)


def _name(path: str) -> str:
    """The object's name: the file's up to its first dot, of characters the kernel allows."""
    stem = path.rpartition("/")[2].partition(".")[0] or "object"
    return re.sub(r"[^A-Za-z0-9_]", "_", stem)


def _number(elf: ElfObject, section: str) -> int:
    """The number of a section, 0 when there is none."""
    found_section = elf.find(section)
    return found_section.number if found_section is not None else 0


def _warn(
    elf: ElfObject, raw: Mapping[int, list[RawRelocation]], data_sections: Iterable[int]
) -> None:
    for index in data_sections:
        if count := len(raw.get(index, ())):
            warnings.warn(
                f"{elf.source}: {elf.sections[index].name} holds {count} pointers, which purebpf "
                "does not relocate: programs read the values that clang wrote",
                RuntimeWarning,
                stacklevel=3,
            )


def _legacy_maps(elf: ElfObject, types: Repaired | None) -> LegacyMaps | None:
    """The maps of before libbpf 1.0; few objects have any."""
    if not any(section.name.startswith("maps") for section in elf.sections):
        return None
    from purebpf.elf.legacy_maps import read_legacy_maps

    return read_legacy_maps(elf, types.btf if types is not None else None)


def _license(elf: ElfObject) -> str:
    """The license up to its NUL; none is none, and the kernel does not take that for GPL."""
    section = elf.find("license")
    if section is None:
        return ""
    text = bytes(elf.contents(section)).partition(b"\0")[0]
    return text.decode(errors="backslashreplace")


def _types(elf: ElfObject, functions: Functions) -> tuple[Repaired | None, BtfExt]:
    """The repaired BTF, or None when there is none, and the tables of .BTF.ext."""
    section, ext_section = elf.find(".BTF"), elf.find(".BTF.ext")
    if section is None or not section.size:
        return None, EMPTY
    btf = Btf(elf.contents(section), source=f"{elf.source} .BTF")
    btf = with_pointer_size(btf, _POINTER_SIZE)
    if btf.byteorder != elf.byteorder:
        raise elf.error("section .BTF", f"is {btf.byteorder}-endian, unlike the file")
    ext = EMPTY
    if ext_section is not None and ext_section.size:
        ext = read_btf_ext(elf.contents(ext_section), btf, elf.source)
    for name, table in ext.functions.items():
        for offset, type_id in table.items():
            if btf.kind(type_id) is not Kind.FUNC:
                raise elf.error(f".BTF.ext {name}+{offset:#x}", f"type {type_id} is not a function")
    hidden = [
        type_id
        for function in functions.by_key.values()
        if function.linkage == "static" and not function.local
        if (type_id := _type_id(ext, function))
    ]
    return repair(btf, elf, hidden), ext


def _type_id(ext: BtfExt, function: Function) -> int:
    return ext.functions.get(function.section.name, {}).get(function.start, 0)


def _functions(
    elf: ElfObject, functions: Functions, resolver: Resolver, ext: BtfExt
) -> dict[str, FunctionSpec]:
    return {
        key: FunctionSpec(
            name=function.name,
            section=function.section.name,
            section_offset=function.start,
            code=bytes(elf.contents(function.section)[function.start : function.end]),
            linkage=function.linkage,
            type_id=_type_id(ext, function),
            relocations=resolver.references(function),
            jump_tables=resolver.jump_tables(function),
            core_relocations=_own(ext.core_relocations, function),
            line_info=_own(ext.lines, function),
        )
        for key, function in functions.by_key.items()
    }


def _own(table: Mapping[str, list[_Placed]], function: Function) -> tuple[_Placed, ...]:
    """The records of a section's table that lie in a function, counted from its start."""
    records = table.get(function.section.name, [])
    first = bisect_left(records, function.start, key=attrgetter("offset"))
    last = bisect_left(records, function.end, key=attrgetter("offset"))
    if first == last:
        return ()
    kind = type(records[first])
    offsets, *rest = zip(*records[first:last], strict=True)
    columns = zip([offset - function.start for offset in offsets], *rest, strict=True)
    return tuple(map(partial(tuple.__new__, kind), columns))  # as _make, and quicker


def _programs(functions: Functions, specs: Mapping[str, FunctionSpec]) -> dict[str, ProgramSpec]:
    """The entry points: functions of sections other than .text.

    A function that others call is a subprogram if it is static, or in a section that the table does
    not name exactly. A static function without callers exists because of the `used` in SEC():
    libbpf refuses the object, cilium/ebpf loads it, and purebpf does, too.
    """
    called = {
        relocation.target
        for spec in specs.values()
        for relocation in spec.relocations
        if relocation.kind in _REFERENCES
    }
    sections = {function.section.name for function in functions.by_key.values()} - {_TEXT}
    definitions = {section: find_section(section) for section in sections}
    return {
        key: _program(function, definitions[function.section.name])
        for key, function in functions.by_key.items()
        if function.section.name in definitions
        if key not in called
        or (
            not function.local
            and _is_exact(function.section.name, definitions[function.section.name])
        )
    }


def _is_exact(name: str, definition: SectionMeaning | None) -> bool:
    """Return True if libbpf, which accepts a tail only where a target belongs, would know the
    section.
    """
    if definition is None:
        return False
    return definition.definition.extras or name.removeprefix("?") == definition.definition.prefix


def _program(function: Function, resolved: SectionMeaning | None) -> ProgramSpec:
    section = function.section.name
    if resolved is None:
        return ProgramSpec(
            function.key, function.key, section, "", 0, 0, autoload=not section.startswith("?")
        )
    definition, target, autoload = resolved
    return ProgramSpec(
        name=function.key,
        function=function.key,
        section=section,
        sec_prefix=definition.prefix,
        type=definition.type,
        attach_type=definition.attach_type,
        attach_target=target,
        flags=definition.flags,
        autoload=autoload,
    )
