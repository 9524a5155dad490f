"""The .BTF.ext section: function names, source lines and CO-RE relocations of instructions.

Three tables (functions, lines, CO-RE relocations), each of them by code section; offsets are
bytes from the start of that section. Records may be longer than known here: the table says how
long they are.
Source: Documentation/bpf/btf.rst, ".BTF.ext section"; libbpf bpf_core_relo since kernel 5.2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from typing import Any

from purebpf.abi.instruction import INSN_SIZE
from purebpf.btf.types.parse import Btf
from purebpf.errors import FormatError
from purebpf.spec import CoreRelocation, LineInfo
from purebpf.tuples import NamedTuple

_MAGIC = 0xEB9F
_HEADER = "HBBIIIII"
_HEADER_SIZE = 24
_HEADER_SIZE_WITH_CORE = 32
_FUNCTION_SIZE = 8
_LINE_SIZE = 16
_CORE_SIZE = 16
_ACCESS_LIMIT = 64 * len("4294967295:")
"""Characters of an accessor string: libbpf allows 64 steps."""
_NAME_LIMIT = 1024


class BtfExt(NamedTuple):
    """The three tables, by section name, each sorted by offset."""

    functions: dict[str, dict[int, int]]
    lines: dict[str, list[LineInfo]]
    core_relocations: dict[str, list[CoreRelocation]]


EMPTY = BtfExt({}, {}, {})


def read_btf_ext(data: memoryview, btf: Btf, source: str) -> BtfExt:
    """The tables of a .BTF.ext section; `btf` has their names.

    Raises:
        FormatError: a table that leaves the section, or a record or name that is malformed.
    """
    reader = _Reader(data, btf, source)
    functions: dict[str, dict[int, int]] = {
        section: dict(records) for section, records in reader.records(0, _FUNCTION_SIZE, "II")
    }
    lines = {
        section: [*map(partial(tuple.__new__, LineInfo), records)]  # as _make, and quicker
        for section, records in reader.records(1, _LINE_SIZE, "IIII")
    }
    core = {
        section: [reader.core_relocation(section, *record) for record in records]
        for section, records in reader.records(2, _CORE_SIZE, "IIII")
    }
    return BtfExt(functions, lines, core)


class _Reader:
    """The header of a .BTF.ext section, and its tables on demand."""

    def __init__(self, data: memoryview, btf: Btf, source: str) -> None:
        self._btf = btf
        self._source = source
        self._prefix = "<" if btf.byteorder == "little" else ">"
        if len(data) < _HEADER_SIZE:
            raise self._error("header", f"truncated: {len(data)} bytes")
        magic, version, _, length, *tables = struct.unpack_from(self._prefix + _HEADER, data)
        if magic != _MAGIC or version != 1:
            raise self._error("header", f"magic {magic:#x}, version {version}: not BTF.ext")
        if not _HEADER_SIZE <= length <= len(data):
            raise self._error("header", f"claims to be {length} bytes long")
        if length >= _HEADER_SIZE_WITH_CORE:
            tables += struct.unpack_from(self._prefix + "II", data, _HEADER_SIZE)
        else:
            tables += (0, 0)
        self._tables = list(zip(tables[::2], tables[1::2], strict=True))
        self._body = data[length:]

    def _error(self, where: str, problem: str) -> FormatError:
        return FormatError(self._source, f".BTF.ext {where}", problem)

    def records(self, table: int, known: int, layout: str) -> Iterator[tuple[str, list[Any]]]:
        """Each section's records of one table, sorted, without the fields not known here."""
        where = ("function table", "line table", "CO-RE table")[table]
        offset, length = self._tables[table]
        if offset + length > len(self._body):
            raise self._error(where, f"{length} bytes at {offset} leave the section")
        if length == 0:
            return
        data = self._body[offset : offset + length]
        if length < 4:
            raise self._error(where, "truncated")
        size: int = struct.unpack_from(self._prefix + "I", data)[0]
        if size < known or size % 4:
            raise self._error(where, f"records of {size} bytes, expected {known}")
        record = struct.Struct(f"{self._prefix}{layout}{size - known}x")
        by_section: dict[str, list[Any]] = {}
        for name, chunk in self._chunks(data, size, where):
            by_section.setdefault(name, []).extend(record.iter_unpack(chunk))
        for name, records in by_section.items():
            records.sort(key=itemgetter(0))
            if any(offset % INSN_SIZE for offset, *_ in records):
                raise self._error(where, f"an offset of {name} is inside an instruction")
            yield name, records

    def _chunks(self, data: memoryview, size: int, where: str) -> Iterator[tuple[str, memoryview]]:
        position = 4
        while position < len(data):
            if position + 8 > len(data):
                raise self._error(where, f"truncated at {position}")
            name, count = struct.unpack_from(self._prefix + "II", data, position)
            position += 8
            end = position + count * size
            if end > len(data):
                raise self._error(where, f"{count} records at {position} leave the table")
            section = self._btf.string(name)
            if len(section) > _NAME_LIMIT:
                raise self._error(where, f"section name at {position - 8} is too long")
            yield section, data[position:end]
            position = end

    def core_relocation(
        self, section: str, offset: int, type_id: int, access: int, kind: int
    ) -> CoreRelocation:
        """A CO-RE record with its accessor string."""
        text = self._btf.string(access)
        if len(text) > _ACCESS_LIMIT:
            raise self._error("CO-RE table", f"accessor of {section}+{offset} is too long")
        return CoreRelocation(offset, type_id, text, kind)
