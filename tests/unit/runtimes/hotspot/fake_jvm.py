"""A JVM in memory: tables that describe it, a code cache, methods. Laid out as a layout says."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from purebpf.runtimes.hotspot import layout as layouts
from purebpf.runtimes.hotspot.layout import Layout
from purebpf.runtimes.hotspot.vm_structs import ALL_EXPORTS

GOLDEN = Path(__file__).parents[3] / "data/hotspot"
VERSIONS = (11, 17, 21, 25)
RELEASES = {
    11: "11.0.13+8",
    17: "17.0.15+6-Debian-1deb12u1",
    21: "21.0.8+9-LTS",
    25: "25.0.3+9-LTS",
}
BASE = 0x7F00_0000_0000
LOW, SEGMENTS = BASE + 0x100000, BASE + 0x200000
SHIFT = 7
HEAP, ARRAY, ITEMS, QUEUE = BASE + 0x40000, BASE + 0x41000, BASE + 0x41100, BASE + 0x41200
NAMES, TABLES, METADATA = BASE + 0x50000, BASE + 0x10000, BASE + 0x60000
COUNTERS = BASE + 0x48000
SIZE = 0x220000


def golden(version: int) -> Layout:
    values = json.loads((GOLDEN / f"{version}.json").read_text())
    return Layout(**{**values, "has_offsets": bool(values["has_offsets"])})


class FakeJvm:
    """A JVM of a version.

    Args:
        version: one that has a golden layout.
        release: as it says; None: that of the version.
    """

    def __init__(self, version: int = 17, release: str | None = None) -> None:
        self.layout = golden(version)
        self.memory = bytearray(SIZE)
        self.symbols = {name: BASE + 8 + 8 * at for at, name in enumerate(ALL_EXPORTS)}
        self.reads = 0
        self._texts: dict[str, int] = {}
        self._text_at = NAMES
        self.release = RELEASES[version] if release is None else release
        self.fields = self._fields()
        self.types = {name: getattr(self.layout, at) for at, name in layouts._SIZES.items()}
        self.constants = {layouts._LINES[version >= 20]: 1, **layouts._SLOTS, "Other::_value": -7}
        self.cache()

    # memory

    def read(self, address: int, size: int) -> bytes:
        self.reads += 1
        at = address - BASE
        return bytes(self.memory[at : at + size]) if 0 <= at < SIZE else b""

    def put(self, address: int, *words: int) -> None:
        struct.pack_into(
            f"<{len(words)}Q", self.memory, address - BASE, *(w % 2**64 for w in words)
        )

    def put_number(self, address: int, size: int, value: int) -> None:
        at = address - BASE
        self.memory[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")

    def put_bytes(self, address: int, data: bytes) -> None:
        self.memory[address - BASE : address - BASE + len(data)] = data

    def text(self, value: str) -> int:
        if value not in self._texts:
            self._texts[value] = self._text_at
            self.put_bytes(self._text_at, value.encode() + b"\0")
            self._text_at += len(value) + 1
        return self._texts[value]

    # tables

    def _fields(self) -> dict[str, tuple[int, int]]:
        """Fields as (offset, static address), each with the name that the version has."""
        fields = {}
        for field, names in {**layouts._FIELDS, **layouts._SOME}.items():
            offset = getattr(self.layout, field)
            if offset != layouts.ABSENT:
                fields[names[-1] if self.layout.has_offsets else names[0]] = (offset, 0)
        for number, name in enumerate((*layouts._ADDRESSES.values(), layouts._RELEASE)):
            fields[name] = (0, BASE + 0x2000 + 8 * number)
        return fields

    def describe(self) -> FakeJvm:
        """Write the tables, as `fields`, `types` and `constants` are now."""
        statics = (HEAP, QUEUE, BASE + 0x1234, COUNTERS, 0x1000, self.text(self.release))
        for number, at in enumerate(statics):
            self.put(BASE + 0x2000 + 8 * number, at if number else ARRAY)
        structs, types, constants = TABLES, TABLES + 0x8000, TABLES + 0xC000
        values = (structs, 48, 0, 8, 24, 32, 40, types, 40, 0, 32, constants, 16, 0, 8)
        for name, value in zip(ALL_EXPORTS, values, strict=True):
            self.put(self.symbols[name], value)
        for number, (name, (offset, static)) in enumerate(self.fields.items()):
            kind, _, own = name.partition(".")
            entry = (self.text(kind), self.text(own), 0, int(bool(static)), offset, static)
            self.put(structs + 48 * number, *entry)
        self.put(structs + 48 * len(self.fields), 0, 0)
        for number, (name, size) in enumerate(self.types.items()):
            self.put(types + 40 * number, self.text(name), 0, 0, 0, size)
        self.put(types + 40 * len(self.types), 0)
        for number, (name, value) in enumerate(self.constants.items()):
            self.put(constants + 16 * number, self.text(name), value)
        self.put(constants + 16 * len(self.constants), 0)
        return self

    # code

    def cache(self) -> None:
        """One code heap of 64 kB without any code, and an interpreter of 4 kB at its begin."""
        layout = self.layout
        self.put(ITEMS, HEAP)
        self.put_number(ARRAY + layout.array_length, 4, 1)
        self.put(ARRAY + layout.array_data, ITEMS)
        self.put(HEAP + layout.heap_memory + layout.space_low, LOW)
        self.put(HEAP + layout.heap_memory + layout.space_high, LOW + 0x10000)
        self.put(HEAP + layout.heap_segments + layout.space_low, SEGMENTS)
        self.put_number(HEAP + layout.heap_shift, 4, SHIFT)
        self.put_bytes(SEGMENTS, b"\xff" * (0x10000 >> SHIFT))
        self.put(QUEUE + layout.queue_buffer, LOW)
        self.put_number(QUEUE + layout.queue_limit, 4, 0x1000)

    def blob(self, at: int, size: int, name: str, frame_words: int = 4) -> int:
        """A block with a blob; the address of its code, at 0x180 in the block."""
        layout = self.layout
        first = at - LOW >> SHIFT
        count = size >> SHIFT
        self.put_bytes(SEGMENTS + first, bytes(min(each, 0xFE) for each in range(count)))
        self.put_number(at + layout.block_used, 1, 1)
        blob = at + layout.block_size
        self.put(blob + layout.blob_name, self.text(name))
        self.put_number(blob + layout.blob_frame_size, 4, frame_words)
        begin, end = at + 0x180, at + size
        if layout.has_offsets:
            self.put_number(blob + layout.blob_begin, 4, begin - blob)
            self.put_number(blob + layout.blob_end, 4, end - blob)
            self.put_number(blob + layout.blob_complete, 2, 16)
        else:
            self.put(blob + layout.blob_begin, begin)
            self.put(blob + layout.blob_end, end)
            self.put_number(blob + layout.blob_complete, 4, 16)
        return begin

    def compiled(self, at: int, method: int, compile_id: int, tables: Tables | None = None) -> int:
        """A compiled method with its tables of inlined methods; the address of its code."""
        layout = self.layout
        begin = self.blob(at, 0x800, "nmethod")
        blob = at + layout.block_size
        self.put(blob + layout.nmethod_method, method)
        self.put_number(blob + layout.nmethod_id, 4, compile_id)
        self.put_number(blob + layout.nmethod_orig_pc, 4, 8)
        if layout.has_offsets:
            self.put_number(blob + layout.nmethod_entry, 2, 8)
            self.put_number(blob + layout.nmethod_deopt, 4, begin + 0x300 - blob)
        else:
            self.put(blob + layout.nmethod_entry, begin + 8)
            self.put(blob + layout.nmethod_deopt, begin + 0x300)
        self._put_tables(blob, begin, tables or Tables())
        return begin

    def _put_tables(self, blob: int, begin: int, tables: Tables) -> None:
        """Metadata, scopes and PcDescs: behind the code, or in memory of their own."""
        layout = self.layout
        metadata = begin + 0x400
        scopes = metadata + 8 * len(tables.metadata)
        pcs = scopes + len(tables.scopes)
        end = pcs + len(tables.pcs)
        self.put(metadata, *tables.metadata)
        self.put_bytes(scopes, tables.scopes)
        self.put_bytes(pcs, tables.pcs)
        if not layout.has_offsets:
            self.put_number(blob + layout.nmethod_metadata, 4, metadata - blob)
            self.put(blob + layout.nmethod_scopes, scopes)
            self.put_number(blob + layout.nmethod_pcs, 4, pcs - blob)
            self.put_number(blob + layout.nmethod_dependencies, 4, end - blob)
            return
        self.put(blob + layout.blob_mutable, metadata)
        self.put_number(blob + layout.blob_relocation_size, 4, 0)
        self.put_number(blob + layout.blob_mutable_size, 4, 8 * len(tables.metadata))
        self.put(blob + layout.nmethod_immutable, METADATA)
        self.put_bytes(METADATA, tables.pcs + tables.scopes)
        self.put_number(blob + layout.nmethod_pcs, 4, 0)
        self.put_number(blob + layout.nmethod_scopes, 4, len(tables.pcs))
        size = len(tables.pcs) + len(tables.scopes)
        self.put_number(blob + layout.nmethod_immutable_size, 4, size)

    # methods

    def symbol(self, at: int, text: str) -> int:
        self.put_number(at + self.layout.symbol_length, 2, len(text.encode()))
        self.put_bytes(at + self.layout.symbol_body, text.encode())
        return at

    def method(self, at: int, name: str, lines: bytes = b"", code_size: int = 40) -> int:
        """A method of shop.Orders in Orders.java; its bytecodes are at `bytecodes(at)`."""
        layout = self.layout
        constant, pool, holder, symbols = at + 0x80, at + 0x200, at + 0x300, at + 0x600
        self.put(at + layout.method_constant, constant)
        self.put(constant + layout.constant_pool, pool)
        self.put_number(constant + layout.constant_code_size, 2, code_size)
        self.put_number(constant + layout.constant_flags, 2, layout.line_flag if lines else 0)
        self.put_number(constant + layout.constant_name, 2, 1)
        self.put_number(constant + layout.constant_signature, 2, 2)
        self.put_bytes(constant + layout.constant_size + code_size, lines)
        self.put(pool + layout.pool_class, holder)
        texts = (name, "(I)V", "Orders.java")
        for number, text in enumerate(texts, 1):
            entry = self.symbol(symbols + 0x40 * number, text) | (number & 1)
            self.put(pool + layout.pool_size + 8 * number, entry)
        self.put(holder + layout.class_name, self.symbol(symbols, "shop/Orders"))
        where = (pool + layout.pool_file) if layout.pool_file >= 0 else holder + layout.class_file
        self.put_number(where, 2, 3)
        return at

    def bytecodes(self, method: int) -> int:
        return method + 0x80 + self.layout.constant_size


class Tables:
    """The tables of a compiled method.

    Args:
        pcs: offsets of code with the offsets of their scopes.
        scopes: packed.
        metadata: the addresses of methods.
    """

    def __init__(
        self,
        pcs: list[tuple[int, int]] | None = None,
        scopes: bytes = b"",
        metadata: tuple[int, ...] = (),
    ) -> None:
        self.pcs = b"".join(struct.pack("<iiii", *each, 0, 0) for each in pcs or [])
        self.scopes = scopes
        self.metadata = metadata


def packed(least_byte: int, *values: int) -> bytes:
    """Numbers as HotSpot packs them."""
    out = bytearray()
    for value in values:
        rest = value
        for number in range(5):
            if rest < 192 - least_byte or number == 4:
                out.append(rest + least_byte)
                break
            rest -= 192 - least_byte
            out.append(192 + (rest & 63))
            rest >>= 6
    return bytes(out)
