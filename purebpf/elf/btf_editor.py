"""Editing BTF in place: the few words a loader has to correct, and types added at the end.

Ids never change, so .BTF.ext and CO-RE relocations stay valid.
Source: Documentation/bpf/btf.rst, "BTF Type and String Encoding".
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Mapping

from purebpf.btf.types.decode import VLEN
from purebpf.btf.types.kinds import DatasecEntry, Kind, Linkage
from purebpf.btf.types.parse import (
    Btf,
    decoded,
    starts,
    with_decoded,
    with_pointer_size,
    with_starts,
)

_HEADER = "HBBIIIII"
_HEADER_SIZE = 24
_MAGIC = 0xEB9F


class BtfEditor:
    """The words of a BTF that was parsed without complaint, ready to be changed."""

    def __init__(self, btf: Btf) -> None:
        self._prefix = "<" if btf.byteorder == "little" else ">"
        self._swapped = btf.byteorder != sys.byteorder
        self._source = btf.source
        self._pointer_size = btf.pointer_size
        _, _, _, length, type_offset, type_size, string_offset, string_size = struct.unpack_from(
            self._prefix + _HEADER, btf.data
        )
        types = length + type_offset
        strings = length + string_offset
        self._words = array("I", btf.data[types : types + type_size])
        if self._swapped:
            self._words.byteswap()
        self._strings = bytearray(btf.data[strings : strings + string_size])
        self._starts = [0, *starts(btf)]
        self._decoded = decoded(btf)
        self._changed: set[int] = set()

    def set_function_linkage(self, type_id: int, linkage: Linkage) -> None:
        """Change a FUNC: its linkage is where other kinds keep their vlen."""
        self._changed.add(type_id)
        at = self._starts[type_id] + 1
        self._words[at] = self._words[at] & ~VLEN | linkage

    def set_variable_linkage(self, type_id: int, linkage: Linkage) -> None:
        """Change a VAR."""
        self._changed.add(type_id)
        self._words[self._starts[type_id] + 3] = linkage

    def set_variable_type(self, type_id: int, target: int) -> None:
        """Make a VAR one of type `target`."""
        self._changed.add(type_id)
        self._words[self._starts[type_id] + 2] = target

    def set_datasec(self, type_id: int, size: int, entries: Iterable[DatasecEntry]) -> None:
        """Change a DATASEC's size and entries, as many as it has; they end up sorted."""
        at = self._starts[type_id]
        self._changed.add(type_id)
        self._words[at + 2] = size
        ordered = sorted(entries, key=lambda entry: entry.offset)
        words = array("I", [word for entry in ordered for word in entry])
        self._words[at + 3 : at + 3 + len(words)] = words

    def name_parameters(self, prototype: int, name: int) -> None:
        """Give every nameless parameter of a FUNC_PROTO, but not its `...`, a name."""
        at = self._starts[prototype]
        self._changed.add(prototype)
        first = at + 3
        for parameter in range(first, first + 2 * (self._words[at + 1] & VLEN), 2):
            if self._words[parameter + 1] and not self._words[parameter]:
                self._words[parameter] = name

    def add_string(self, text: str) -> int:
        """Append a string; its offset."""
        offset = len(self._strings)
        self._strings += text.encode() + b"\0"
        return offset

    def add_int(self, name: int) -> int:
        """Append `int`, 32 bits and signed; its id."""
        return self._add(name, Kind.INT, 4, 1 << 24 | 32)

    def add_variable(self, name: int, target: int) -> int:
        """Append a global VAR of type `target`; its id."""
        return self._add(name, Kind.VAR, target, Linkage.GLOBAL)

    def add_pointer_to_struct(self, name: str) -> int:
        """Append `struct name {}` and a pointer to it; the pointer's id."""
        return self._add(0, Kind.PTR, self._add(self.add_string(name), Kind.STRUCT, 0))

    def copy_function(self, type_id: int, parameters: Mapping[int, int]) -> int:
        """Append a copy of a FUNC, with other types for some parameters; its id."""
        at = self._starts[type_id]
        function = self._words[at : at + 3]
        prototype = self._starts[function[2]]
        words = self._words[prototype : prototype + 3 + 2 * (self._words[prototype + 1] & VLEN)]
        for index, target in parameters.items():
            words[3 + 2 * index + 1] = target
        function[2] = self._append(words)
        return self._append(function)

    def add_tag(self, text: str, type_id: int, component: int) -> int:
        """Append a DECL_TAG; its id."""
        return self._add(self.add_string(text), Kind.DECL_TAG, type_id, component)

    def _add(self, name: int, kind: Kind, *rest: int) -> int:
        return self._append((name, kind << 24, *rest))

    def _append(self, words: Iterable[int]) -> int:
        self._starts.append(len(self._words))
        self._words.extend(words)
        return len(self._starts) - 1

    def finish(self) -> Btf:
        """The edited BTF."""
        words = self._words
        if self._swapped:
            words = words[:]
            words.byteswap()
        types = words.tobytes()
        header = struct.pack(
            self._prefix + _HEADER,
            _MAGIC,
            1,
            0,
            _HEADER_SIZE,
            0,
            len(types),
            len(types),
            len(self._strings),
        )
        edited = with_starts(header + types + self._strings, self._starts[1:], self._source)
        known = {at: kept for at, kept in self._decoded.items() if at not in self._changed}
        return with_pointer_size(with_decoded(edited, known), self._pointer_size)
