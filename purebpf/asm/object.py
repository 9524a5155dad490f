"""`build`: functions that were assembled, and maps, as an object that can be loaded."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from purebpf.abi.instruction import INSN_SIZE, pack
from purebpf.abi.sections import find_section
from purebpf.asm.program import Function, Program
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf
from purebpf.errors import SchemaError
from purebpf.spec import (
    ExternSpec,
    FunctionSpec,
    LineInfo,
    MapSpec,
    ObjectSpec,
    ProgramSpec,
    RelocationKind,
)

__all__ = ["build"]

_HEADER = struct.Struct("<HBBIIIII")
_MAGIC = 0xEB9F
_INT, _PROTOTYPE = 1, 2
_STATIC, _GLOBAL = 0, 1
_SIGNED_32 = 1 << 24 | 32
_LONGEST_LINE = 200
_TEXT, _KSYMS = ".text", ".ksyms"


def build(
    name: str,
    functions: Iterable[Function],
    maps: Iterable[MapSpec] = (),
    license: str = "GPL",  # noqa: A002 - as SEC("license") is called
) -> ObjectSpec:
    """An object of these programs, of the functions that they call, and of maps.

    Args:
        name: of the object.
        functions: each a `Program`, or a `Function` that others call.
        maps: those that instructions refer to by name.
        license: "GPL" for helpers that the kernel keeps to programs under it.

    Raises:
        SchemaError: two of a name; a section that libbpf's table does not have; a reference to a
            map or function that is not there.
        TooLongError, ValueError: as `Assembler.finish`.
    """
    assembled, map_list = list(functions), list(maps)
    _check_names([function.name for function in assembled], "function")
    map_names = [spec.name for spec in map_list]
    _check_names(map_names, "map")
    known = {*map_names, *(function.name for function in assembled)}
    types = _Types()
    externs = {
        relocation.target: ExternSpec(
            relocation.target, _KSYMS, types.function(relocation.target, _GLOBAL), weak=False
        )
        for function in assembled
        for relocation in function.relocations
        if relocation.kind is RelocationKind.EXTERN
    }
    return ObjectSpec(
        name=name,
        source=f"{name} (assembled)",
        byteorder="little",
        license=license,
        programs={
            function.name: _program(function)
            for function in assembled
            if isinstance(function, Program)
        },
        functions={function.name: _function(function, types, known) for function in assembled},
        maps={spec.name: spec for spec in map_list},
        variables={},
        externs=externs,
        btf=types.finish(),
    )


def _check_names(names: Sequence[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise SchemaError(f"two {what}s have the name {name}")


def _program(program: Program) -> ProgramSpec:
    meaning = find_section(program.section)
    if meaning is None:
        raise SchemaError(f"program {program.name}: unknown section {program.section!r}")
    definition = meaning.definition
    return ProgramSpec(
        name=program.name,
        function=program.name,
        section=program.section,
        sec_prefix=definition.prefix,
        type=definition.type,
        attach_type=definition.attach_type,
        attach_target=meaning.target,
        flags=definition.flags,
        autoload=meaning.autoload,
    )


def _function(function: Function, types: _Types, known: set[str]) -> FunctionSpec:
    for relocation in function.relocations:
        if relocation.kind is not RelocationKind.EXTERN and relocation.target not in known:
            raise SchemaError(f"{function.name} refers to {relocation.target!r}, which is not here")
    is_program = isinstance(function, Program)
    return FunctionSpec(
        name=function.name,
        section=function.section if isinstance(function, Program) else _TEXT,
        section_offset=0,
        code=pack(function.finish()),
        linkage="global" if is_program else "static",
        type_id=types.function(function.name, _GLOBAL if is_program else _STATIC),
        relocations=tuple(function.relocations),
        line_info=tuple(
            LineInfo(index * INSN_SIZE, types.string(file), types.string(_source(file, line, text)),
                     line << 10)
            for index, file, line, text in function.lines
        ),
    )  # fmt: skip


def _source(file: str, line: int, text: str) -> str:
    """A line of the source, as the verifier prints it; "" where there is no file."""
    text = text.strip()
    if not text:
        import linecache

        text = linecache.getline(file, line).strip()
    return text.encode("ascii", "replace").decode()[:_LONGEST_LINE]


class _Types:
    """The BTF that functions and their lines need: `int name(void)` for each."""

    def __init__(self) -> None:
        self._strings = bytearray(b"\0")
        self._places = {"": 0}
        self._types = bytearray()
        self._count = 0
        self._add("int", Kind.INT, 4, _SIGNED_32)
        self._add("", Kind.FUNC_PROTO, _INT)

    def string(self, text: str) -> int:
        """Return the place of a string."""
        if text not in self._places:
            self._places[text] = len(self._strings)
            # a path may have any bytes
            self._strings += text.encode("utf-8", "surrogateescape") + b"\0"
        return self._places[text]

    def function(self, name: str, linkage: int) -> int:
        """The id of a FUNC."""
        return self._add(name, Kind.FUNC, _PROTOTYPE, vlen=linkage)

    def _add(self, name: str, kind: Kind, size_or_type: int, *tail: int, vlen: int = 0) -> int:
        words = (self.string(name), kind << 24 | vlen, size_or_type, *tail)
        self._types += struct.pack(f"<{len(words)}I", *words)
        self._count += 1
        return self._count

    def finish(self) -> Btf:
        """The whole."""
        size = len(self._types)
        header = (_MAGIC, 1, 0, _HEADER.size, 0, size, size, len(self._strings))
        return Btf(_HEADER.pack(*header) + self._types + self._strings, source="asm")
