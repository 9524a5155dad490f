"""The global variables of a loaded object, by name."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from purebpf.abi.bpf import BPF_F_MMAPABLE, bpf_map_type
from purebpf.closable import Closing
from purebpf.errors import KernelError, NotSupportedError, SchemaError
from purebpf.loader.maps.map import Map
from purebpf.similar import unknown_name
from purebpf.spec import ObjectSpec, VariableSpec
from purebpf.syscall import bpf
from purebpf.syscall.memory import Memory
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.load.global_array import GlobalArray
    from purebpf.loader.maps.map_plain_codecs import Codec

__all__ = ["Globals"]

_INDEX = bytes(4)
"""A data section is an array with one element."""


class _Mapped(NamedTuple):
    """A variable in mapped memory, and the decoder of a copy of its bytes."""

    memory: Memory
    start: int
    end: int
    decode: Callable[[bytes], Any]


class Globals(Closing, MutableMapping[str, Any]):
    """The variables of .data, .bss, .rodata and the arena: values typed by BTF, bytes without.

    An array, but for text and bytes, is a `GlobalArray`: a view of its elements, in place.

    Where the kernel maps the section (BPF_F_MMAPABLE, Linux 5.5, commit fc9702273e2e), reading and
    writing touch just the variable; a store of 1, 2, 4 or 8 aligned bytes is one store to the
    program. Elsewhere a write reads the whole section and writes it back, and undoes the program's
    writes in between.

    Constants were frozen at load: change them before, with `ObjectSpec.set`.
    """

    def __init__(self, spec: ObjectSpec, maps: Mapping[str, Map]) -> None:
        """Show the variables of `spec`; `maps` has their sections and stays open."""
        self._variables = {
            name: variable for name, variable in spec.variables.items() if variable.map in maps
        }
        self._begins = {name: section.contents_offset for name, section in spec.maps.items()}
        self._maps = maps
        self._btf = spec.btf
        self._memory: dict[str, Memory] = {}
        self._mapped: dict[str, _Mapped] = {}
        self._arrays: dict[str, GlobalArray[Any]] = {}

    def __getitem__(self, name: str) -> Any:
        """The variable's value.

        Raises:
            KeyError: there is no such variable.
            KernelError: the section cannot be mapped or read.
        """
        # No further than it goes: an array at the end of a struct has as many elements as follow.
        # A copy: memory that is looked at when a signal's handler raises cannot be unmapped.
        if (variable_bytes := self._mapped.get(name)) is not None:
            return variable_bytes.decode(
                bytes(variable_bytes.memory.view[variable_bytes.start : variable_bytes.end])
            )
        if (array := self._arrays.get(name)) is not None:
            return array
        variable = self._variable(name)
        codec = self._codec(variable)
        if hasattr(codec, "element"):  # an array of values, neither text nor bytes
            return self._show_array(variable, codec)
        data = self._load(variable, 0, variable.size)
        if (memory := self._map_section(variable.map)) is not None:
            start = self._begins[variable.map] + variable.offset
            self._mapped[name] = _Mapped(memory, start, start + variable.size, codec.decode)
        return codec.decode(data)

    def __setitem__(self, name: str, value: Any) -> None:
        """Give the variable a value, which the program sees at once.

        Raises:
            KeyError: there is no such variable.
            SchemaError: its type cannot hold the value.
            NotSupportedError: it is constant, or in a map that is frozen or read-only.
            KernelError: the section cannot be mapped or written.
        """
        variable = self._variable(name)
        self._refuse_constant(variable)
        try:
            data = self._codec(variable).encode(value)
        except SchemaError as error:
            raise SchemaError(f"variable {name}: {error}") from None
        if len(data) > variable.size:
            raise SchemaError(f"variable {name} has {variable.size} bytes, not {len(data)}")
        self._store(variable, 0, data)

    def _show_array(self, variable: VariableSpec, codec: Any) -> GlobalArray[Any]:
        from purebpf.loader.load.global_array import GlobalArray, VariableBytes

        def write(start: int, data: bytes) -> None:
            self._refuse_constant(variable)
            self._store(variable, start, data)

        variable_bytes = VariableBytes(variable.name, partial(self._load, variable), write)
        return self._arrays.setdefault(variable.name, GlobalArray(codec, variable_bytes))

    def _refuse_constant(self, variable: VariableSpec) -> None:
        name = variable.name
        if self._maps[variable.map].frozen:
            raise NotSupportedError(
                f"writing {name!r}",
                f"it is constant after load; use spec.set({name}=...) before load()",
            )

    def _load(self, variable: VariableSpec, start: int, end: int) -> bytes:
        """A copy of a part of the variable: offsets from its start."""
        variable_bytes = self._begins[variable.map] + variable.offset
        memory = self._map_section(variable.map)
        section = self._read(variable.map) if memory is None else memory.view
        return bytes(section[variable_bytes + start : variable_bytes + end])

    def _store(self, variable: VariableSpec, offset: int, data: bytes) -> None:
        """Write `data` into the variable, and nothing beside it where the section is mapped."""
        start = self._begins[variable.map] + variable.offset + offset
        end = start + len(data)
        if (memory := self._map_section(variable.map)) is not None:
            if memory.view.readonly:
                reason = (
                    f"map {variable.map}, which another process created, is frozen or read-only"
                )
                raise NotSupportedError(f"writing {variable.name!r}", reason)
            memory.view[start:end] = data
            return
        section = self._read(variable.map)
        section[start:end] = data
        with _about(f"writing {variable.name!r}"):
            bpf.map_update_elem(self._maps[variable.map].fileno(), _INDEX, section)

    def __delitem__(self, name: str) -> None:
        """Raise TypeError: a variable cannot be deleted."""
        raise TypeError("a global variable cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __contains__(self, name: object) -> bool:
        return name in self._variables

    def __repr__(self) -> str:
        return f"<Globals {', '.join(self._variables)}>"

    def close(self) -> None:
        """Unmap the sections; again is harmless. The maps are not closed."""
        self._mapped.clear()
        while self._memory:
            self._memory.popitem()[1].close()

    def _variable(self, name: str) -> VariableSpec:
        variable = self._variables.get(name)
        if variable is None:
            raise unknown_name(self._variables, name, "unknown global variable")
        return variable

    def _codec(self, variable: VariableSpec) -> Codec:
        if self._btf is None or not variable.type_id:
            from purebpf.loader.maps.map_plain_codecs import Bytes

            return Bytes(variable.size)
        from purebpf.btf.codec.codecs import variable_codec  # remembers what it made

        return variable_codec(self._btf, variable.type_id, variable.name)

    def _map_section(self, section: str) -> Memory | None:
        """The section's memory, mapped when it is first needed; None where it cannot be."""
        if (memory := self._memory.get(section)) is None:
            owner = self._maps[section]
            if owner.type == bpf_map_type.BPF_MAP_TYPE_ARENA:
                return owner.arena
            if not owner.info.flags & BPF_F_MMAPABLE:
                return None
            memory = self._memory[section] = _map_memory(owner)
        return memory

    def _read(self, section: str) -> bytearray:
        owner = self._maps[section]
        data = bytearray(owner.info.value_size)
        with _about(f"reading {section}"):
            bpf.map_lookup_elem(owner.fileno(), _INDEX, data)
        return data


def _map_memory(owner: Map) -> Memory:
    """The map's memory, writable if it is not frozen."""
    if not owner.frozen:
        try:
            return owner.mmap()
        except KernelError as error:
            if error.errno != errno.EPERM:
                raise
    return owner.mmap(writable=False)


@contextmanager
def _about(description: str) -> Iterator[None]:
    """Add the operation to a KernelError."""
    try:
        yield
    except KernelError as error:
        raise KernelError(error.call, error.errno or 0, description) from None
