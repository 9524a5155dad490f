"""V8's heap and code in memory, laid out as a golden layout says."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path

from purebpf.runtimes.memory import Memory
from purebpf.runtimes.v8.code import CodeReader
from purebpf.runtimes.v8.code_ranges import CodeRanges
from purebpf.runtimes.v8.functions import Functions
from purebpf.runtimes.v8.heap import Heap
from purebpf.runtimes.v8.layout import ABSENT, V8Layout

GOLDEN = Path(__file__).parents[3] / "data/v8"
VERSIONS = (1001, 1002, 1103, 1108, 1204, 1209, 1306, 1401, 1406)
BASE = 0x2000_0000_0000
JIT, JIT_SIZE = BASE + 0x80000, 0x40000
BUILTINS = BASE + 0xE0000
SIZE = 0x100000
WORD = 8
ONE_BYTE_TEXT, TWO_BYTE_TEXT, CONS, SLICED, THIN, EXTERNAL = 40, 32, 33, 35, 37, 42
"""Types of strings, the same in all versions."""


def golden(version: int) -> V8Layout:
    return V8Layout(**json.loads((GOLDEN / f"{version}.json").read_text()))


def smi(value: int) -> int:
    """A small integer as V8 has it."""
    return value % (1 << 32) << 32


def unsigned(value: int) -> bytes:
    """A number of 7 bits a byte."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def zigzag(value: int) -> bytes:
    return unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


class FakeV8:
    """A process with V8.

    Args:
        version: one that has a golden layout.

    Attributes:
        reads: how many reads there were.
    """

    def __init__(self, version: int = 1306) -> None:
        self.layout = golden(version)
        self.memory = bytearray(SIZE)
        self.reads = 0
        self._heap_at = BASE + 0x1000
        self._code_at = JIT + 0x1000
        self._maps: dict[int, int] = {}
        self._meta_map = 0
        self._meta_map = self.map(self.layout.type_map)
        self.put(self._meta_map - 1, self._meta_map)

    def read(self, address: int, size: int) -> bytes:
        self.reads += 1
        at = address - BASE
        return bytes(self.memory[at : at + size]) if 0 <= at < SIZE else b""

    def reader(self, sizes: bytes = b"") -> CodeReader:
        heap = self.heap()
        functions = Functions(heap)
        return CodeReader(heap, functions, sizes, self.ranges())

    def heap(self) -> Heap:
        return Heap(Memory(self.read), self.layout)

    def ranges(self) -> CodeRanges:
        return CodeRanges([(JIT, JIT + JIT_SIZE)], [(BUILTINS, BUILTINS + 0x10000)])

    # memory

    def put(self, address: int, *words: int) -> None:
        struct.pack_into(
            f"<{len(words)}Q", self.memory, address - BASE, *(word % 2**64 for word in words)
        )

    def put_number(self, address: int, size: int, value: int) -> None:
        self.put_bytes(address, (value % (1 << 8 * size)).to_bytes(size, "little"))

    def put_bytes(self, address: int, data: bytes) -> None:
        self.memory[address - BASE : address - BASE + len(data)] = data

    def field(self, pointer: int, offset: int, word: int) -> None:
        self.put(pointer - 1 + offset, word)

    # objects: pointers to them

    def object(self, kind: int, size: int) -> int:
        at, self._heap_at = self._heap_at, self._heap_at + (size + 15 & ~7)
        assert self._heap_at < JIT
        self.put(at, self.map(kind) if kind != self.layout.type_map else self._meta_map)
        return at + 1

    def map(self, kind: int) -> int:
        if kind not in self._maps:
            at, self._heap_at = self._heap_at, self._heap_at + 80
            self._maps[kind] = at + 1
            self.put(at, self._meta_map)
            self.put_number(at + self.layout.map_type, 2, kind)
        return self._maps[kind]

    def text(self, value: str, *, kind: int | None = None) -> int:
        is_narrow = all(ord(each) < 0x100 for each in value)
        raw = value.encode("latin-1" if is_narrow else "utf-16-le")
        pointer = self.object(
            kind or (ONE_BYTE_TEXT if is_narrow else TWO_BYTE_TEXT), 16 + len(raw)
        )
        self.put_number(pointer - 1 + 12, 4, len(value))
        self.put_bytes(pointer - 1 + 16, raw)
        return pointer

    def compound(self, kind: int, length: int, first: int, second: int = 0) -> int:
        """A string that is made of others, or has its text elsewhere."""
        pointer = self.object(kind, 32)
        self.put_number(pointer - 1 + 12, 4, length)
        self.field(pointer, 16, first)
        self.field(pointer, 24, second)
        return pointer

    def byte_array(self, data: bytes) -> int:
        pointer = self.object(0x2FF, 16 + len(data))
        self.field(pointer, WORD, smi(len(data)))
        self.put_bytes(pointer - 1 + 16, data)
        return pointer

    def array(self, words: Sequence[int]) -> int:
        pointer = self.object(self.layout.type_fixed_array, 16 + WORD * len(words))
        self.field(pointer, WORD, smi(len(words)))
        self.put(pointer - 1 + 16, *words)
        return pointer

    def script(self, name: str, source: str, number: int = 7, first_line: int = 0) -> int:
        layout = self.layout
        pointer = self.object(layout.type_script, 128)
        self.field(pointer, layout.script_name, self.text(name))
        self.field(pointer, layout.script_source, self.text(source))
        self.field(pointer, layout.script_id, smi(number))
        self.field(pointer, layout.script_line_offset, smi(first_line))
        self.field(pointer, layout.script_line_ends, smi(0))
        return pointer

    def shared(self, name: int, script: int, literal: int = 3) -> int:
        """A SharedFunctionInfo; its name is a string, or a ScopeInfo."""
        layout = self.layout
        pointer = self.object(layout.type_shared, 96)
        self.field(pointer, layout.shared_name, name)
        self.field(pointer, layout.shared_script, script)
        self.put_number(pointer - 1 + layout.shared_flags + 4, 4, literal)
        return pointer

    def scope(self, local_names: int, *words: int) -> int:
        """A ScopeInfo with so many local variables, and words behind them."""
        layout = self.layout
        before = layout.scope_first + (2 * local_names if local_names <= 75 else 1)
        pointer = self.object(layout.type_scope, WORD * (2 + before + len(words)))
        self.field(pointer, WORD * (1 + layout.scope_locals), smi(local_names))
        self.put(pointer - 1 + WORD * (1 + before), *words)
        return pointer

    def function(self, shared: int) -> int:
        pointer = self.object(self.layout.type_function_first, 72)
        self.field(pointer, self.layout.function_shared, shared)
        return pointer

    def bytecode(self, data: bytes, positions: bytes = b"") -> int:
        layout = self.layout
        pointer = self.object(layout.type_bytecode, layout.bytecode_data + len(data))
        self.field(pointer, WORD, smi(len(data)))
        self.field(pointer, layout.bytecode_positions, self.byte_array(positions))
        self.put_bytes(pointer - 1 + layout.bytecode_data, data)
        return pointer

    def positions(self, *pairs: tuple[int, int]) -> bytes:
        """A table of source positions: code offsets, and characters."""
        code, raw, table = -1, 0, b""
        for offset, character in pairs:
            position = character + 1 << 1
            shift = 2 if self.layout.version >= 1400 else 1
            table += unsigned((offset - code) << shift) + zigzag(position - raw)
            code, raw = offset, position
        return table

    def code(
        self, kind: int, size: int, *, positions: bytes = b"", deopt: int = 0, tables: bytes = b""
    ) -> tuple[int, int]:
        """Generated code with tables behind it: the pointer to its Code, and its begin."""
        layout, at = self.layout, self._code_at
        self._code_at += 0x200 + size + len(tables) & ~63
        if layout.code_header != ABSENT:
            self.put(at, self.map(layout.type_code))
            pointer, start = at + 1, at + layout.code_header
        else:
            pointer, start = self.object(layout.type_code, 80), at + 32
            self.put(at, self.map(layout.type_stream), pointer)
            self.field(pointer, layout.code_start, start)
        self.field(pointer, layout.code_deopt, deopt)
        self.field(pointer, layout.code_positions, self.byte_array(positions))
        self.put_number(pointer - 1 + layout.code_size, 4, size)
        self.put_number(pointer - 1 + layout.code_flags, 4, kind)
        self.put_bytes(start + size, tables)
        return pointer, start
