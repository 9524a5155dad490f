"""`write_object`: an ObjectSpec as an ELF file, as clang and libbpf's linker write one."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping

from purebpf.abi.bpf import bpf_map_type
from purebpf.elf.container import (
    STB_GLOBAL,
    STB_LOCAL,
    STB_WEAK,
    STT_FUNC,
    STT_OBJECT,
    STT_SECTION,
)
from purebpf.elf.write.code import CodeSection, group_functions
from purebpf.elf.write.container import Container, Symbol
from purebpf.elf.write.types import MAPS, ObjectTypes
from purebpf.errors import LinkError, NotSupportedError
from purebpf.spec import MapSpec, ObjectSpec, RelocationKind

__all__ = ["write_object"]

_KCONFIG = ".kconfig"
_STT_NOTYPE = 0
_BTF_EXT = "HBB7I"
_BTF_MAGIC, _BTF_EXT_SIZE = 0xEB9F, 32
_BINDINGS = {"global": STB_GLOBAL, "weak": STB_WEAK, "static": STB_LOCAL}
_STRUCT_OPS, _ARENA = bpf_map_type.BPF_MAP_TYPE_STRUCT_OPS, bpf_map_type.BPF_MAP_TYPE_ARENA


def write_object(spec: ObjectSpec) -> bytes:
    """Return an object file that libbpf, cilium/ebpf, bpftool and `read_object` read.

    Functions that no program calls are left out, and so is whatever only purebpf knows: of maps
    `exclusive_to`, `autocreate` and pin directories, of programs `ifindex` and signatures.

    Raises:
        LinkError: the object has no BTF.
        NotSupportedError: struct_ops, an arena, jump tables, or maps with declared contents.
    """
    if spec.btf is None:
        raise LinkError(spec.source, spec.name, "the object has no BTF: compile it with -g")
    for spec_map in spec.maps.values():
        _check(spec, spec_map)
    return _Writer(spec, ObjectTypes(spec, spec.btf)).write()


def _check(spec: ObjectSpec, spec_map: MapSpec) -> None:
    problem = ""
    if spec_map.type in (_STRUCT_OPS, _ARENA):
        problem = f"map {spec_map.name} has a type that cannot be written (struct_ops, arena)"
    elif spec_map.initial:
        problem = f"map {spec_map.name} has contents that the object declares"
    if problem:
        raise NotSupportedError(f"writing {spec.source}", problem)


class _Writer:
    """One file being written."""

    def __init__(self, spec: ObjectSpec, types: ObjectTypes) -> None:
        self._spec = spec
        self._types = types
        self._file = Container(spec.byteorder)
        self._code = group_functions(spec)
        self._prefix = "<" if spec.byteorder == "little" else ">"
        self._symbols: dict[tuple[str, str], Symbol] = {}

    def write(self) -> bytes:
        """Return the bytes of the file."""
        for section in self._code:
            self._file.add_section(section.name, bytes(section.code), executable=True)
            self._define("section", section.name, Symbol("", section.name, STT_SECTION))
        if self._spec.license:
            self._file.add_section("license", self._spec.license.encode() + b"\0", writable=True)
        if self._types.maps_size:
            self._file.add_section(MAPS, bytes(self._types.maps_size), writable=True)
        self._add_data()
        self._add_symbols()
        for section in self._code:
            self._file.relocate(section.name, self._relocations(section))
        self._add_types()
        return self._file.finish()

    def _define(self, kind: str, key: str, symbol: Symbol) -> None:
        self._symbols[kind, key] = self._file.add_symbol(symbol)

    def _add_data(self) -> None:
        for spec_map in self._spec.maps.values():
            if spec_map.section and spec_map.section != _KCONFIG:
                contents = spec_map.contents.ljust(spec_map.value_size, b"\0")
                is_empty = spec_map.section.startswith(".bss")
                is_constant = spec_map.section.startswith(".rodata")
                self._file.add_section(
                    spec_map.section, contents, writable=not is_constant, no_bits=is_empty
                )
                symbol = Symbol("", spec_map.section, STT_SECTION)
                self._define("section", spec_map.name, symbol)

    def _add_symbols(self) -> None:
        for section in self._code:
            for function, offset in section.functions:
                binding = _BINDINGS[function.linkage]
                symbol = Symbol(function.name, section.name, STT_FUNC, binding, offset)
                self._file.add_symbol(symbol._replace(size=len(function.code)))
        for name, place in self._types.places.items():
            self._define("map", name, Symbol(name, MAPS, STT_OBJECT, STB_GLOBAL, place))
        for name, variable in self._spec.variables.items():
            holder = self._spec.maps[variable.map].section
            if holder != _KCONFIG:
                symbol = Symbol(name, holder, STT_OBJECT, STB_GLOBAL, variable.offset)
                self._file.add_symbol(symbol._replace(size=variable.size))
        for name, extern in self._spec.externs.items():
            binding = STB_WEAK if extern.weak else STB_GLOBAL
            self._define("extern", name, Symbol(name, "", _STT_NOTYPE, binding))

    def _relocations(self, section: CodeSection) -> Iterator[tuple[int, Symbol, bool]]:
        """Yield the place of each relocation, its symbol, and True for a call."""
        for place, relocation in section.relocations:
            kind, target = relocation.kind, relocation.target
            is_call = kind is RelocationKind.CALL
            if kind in (RelocationKind.CALL, RelocationKind.FUNCTION):
                name = self._section_of(target)
                if is_call and name == section.name:
                    continue  # the distance is in the instruction
                yield place, self._symbols["section", name], is_call
            elif kind is RelocationKind.MAP:
                yield place, self._symbols["map", target], False
            elif kind is RelocationKind.DATA and target == _KCONFIG:
                yield place, self._symbols["extern", self._value_at(relocation.addend)], False
            elif kind is RelocationKind.DATA:
                yield place, self._symbols["section", target], False
            else:
                yield place, self._symbols["extern", target], section.is_call(place)

    def _section_of(self, key: str) -> str:
        return next(section.name for section in self._code if key in section.places)

    def _value_at(self, offset: int) -> str:
        return next(
            variable.name
            for variable in self._spec.variables.values()
            if variable.map == _KCONFIG and variable.offset == offset
        )

    def _add_types(self) -> None:
        strings = _Texts(self._spec)
        texts = [section.name for section in self._code]
        for section in self._code:
            texts += strings.of(section)
        data, offsets = self._types.write(texts)
        self._file.add_section(".BTF", data)
        tables = (
            self._table(8, ((each.name, each.function_info()) for each in self._code), offsets),
            self._table(16, self._lines(strings, offsets), offsets),
            self._table(16, self._core(offsets), offsets),
        )
        places = [sum(map(len, tables[:index])) for index in range(len(tables))]
        header = struct.pack(
            self._prefix + _BTF_EXT,
            *(_BTF_MAGIC, 1, 0, _BTF_EXT_SIZE),
            *(number for pair in zip(places, map(len, tables), strict=True) for number in pair),
        )
        self._file.add_section(".BTF.ext", header + b"".join(tables))

    def _table(
        self,
        size: int,
        sections: Iterable[tuple[str, Iterable[tuple[int, ...]]]],
        offsets: Mapping[str, int],
    ) -> bytes:
        """One table of .BTF.ext: records of so many bytes by section."""
        data = struct.pack(self._prefix + "I", size)
        for name, records in sections:
            packed = [struct.pack(f"{self._prefix}{size // 4}I", *record) for record in records]
            if packed:
                data += struct.pack(self._prefix + "II", offsets[name], len(packed))
                data += b"".join(packed)
        return data

    def _lines(
        self, strings: _Texts, offsets: Mapping[str, int]
    ) -> Iterator[tuple[str, Iterable[tuple[int, ...]]]]:
        for section in self._code:
            yield (
                section.name,
                [
                    (
                        start + line.offset,
                        offsets[strings.text(line.file_name)],
                        offsets[strings.text(line.line)],
                        line.line_col,
                    )
                    for function, start in section.functions
                    for line in function.line_info
                ],
            )

    def _core(self, offsets: Mapping[str, int]) -> Iterator[tuple[str, Iterable[tuple[int, ...]]]]:
        for section in self._code:
            yield (
                section.name,
                [
                    (start + each.offset, each.type_id, offsets[each.access], each.kind)
                    for function, start in section.functions
                    for each in function.core_relocations
                ],
            )


class _Texts:
    """The strings that lines and CO-RE relocations refer to."""

    def __init__(self, spec: ObjectSpec) -> None:
        assert spec.btf is not None
        self._btf = spec.btf

    def text(self, offset: int) -> str:
        """Return a string of the spec's BTF."""
        return self._btf.string(offset)

    def of(self, section: CodeSection) -> Iterator[str]:
        """Yield the strings of a section's functions."""
        for function, _ in section.functions:
            for line in function.line_info:
                yield self.text(line.file_name)
                yield self.text(line.line)
            for each in function.core_relocations:
                yield each.access
