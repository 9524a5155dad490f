"""Layouts of file headers, declared with construct: perf.data, jitdump and ELF.

No measurement imports this: construct takes 24 ms to import, and is 9 to 51 times slower than
struct. `scripts/generate_formats.py` derives `formats.py` from it, which readers and writers use;
`purebpf inspect` reads with the declarations themselves: docs/design/0010-elf-and-layouts.md.

Sources: tools/perf/Documentation/perf.data-file-format.txt and jitdump-specification.txt,
tools/perf/util/header.[ch] of the Linux source; gabi 4.2, "Object Files".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import construct as c

from purebpf.abi.perf import PERF_EVENT_ATTR

__all__ = ["FEATURES", "LAYOUTS", "layouts", "perf_event_attr", "struct_format"]


def layouts(order: str = "=") -> dict[str, c.Construct]:
    """Every layout of a fixed size by name, in a byte order as `struct` spells it."""
    u8, u16, u32, u64 = (c.FormatField(order, code) for code in "BHLQ")
    i32 = c.FormatField(order, "l")
    section = c.Struct("offset" / u64, "size" / u64)
    event_header = c.Struct("type" / u32, "misc" / u16, "size" / u16)
    jit_code = ("pid" / u32, "tid" / u32, "vma" / u64)
    return {
        "PERF_FILE_SECTION": section,
        "PERF_FILE_HEADER": c.Struct(
            "magic" / c.Bytes(8),
            "size" / u64,
            "attr_size" / u64,  # with the section of its ids
            "attrs" / section,
            "data" / section,
            "event_types" / section,  # unused since Linux 3.5
            "features" / c.Array(4, u64),
        ),
        "PERF_EVENT_HEADER": event_header,
        "PERF_BUILD_ID": c.Struct(
            "pid" / i32, "build_id" / c.Bytes(20), "length" / u8, c.Padding(3)
        ),
        "PERF_NRCPUS": c.Struct("available" / u32, "online" / u32),
        "PERF_EVENT_DESC": c.Struct("count" / u32, "attr_size" / u32),
        "JITDUMP_HEADER": c.Struct(
            "magic" / c.Bytes(4),
            "version" / u32,
            "total_size" / u32,
            "elf_mach" / u32,
            c.Padding(4),
            "pid" / u32,
            "timestamp" / u64,
            "flags" / u64,
        ),
        "JITDUMP_PREFIX": c.Struct("id" / u32, "total_size" / u32, "timestamp" / u64),
        "JITDUMP_LOAD": c.Struct(
            *jit_code, "code_addr" / u64, "code_size" / u64, "code_index" / u64
        ),
        "JITDUMP_MOVE": c.Struct(
            *jit_code,
            "old_code_addr" / u64,
            "new_code_addr" / u64,
            "code_size" / u64,
            "code_index" / u64,
        ),
        "ELF_NOTE": c.Struct("name_size" / u32, "size" / u32, "type" / u32),
        **_elf(u16, u32, u32, u8, "ELF32"),
        **_elf(u16, u32, u64, u8, "ELF64"),
    }


def _elf(half: Any, word: Any, native: Any, byte: Any, name: str) -> dict[str, c.Construct]:
    """The headers of a class of ELF files; `native` is the size of its addresses.

    The header begins behind e_ident. Segments and symbols have another order in the larger class.
    """
    is64 = native is not word
    flags = ("flags" / word,)
    rest = ("info" / byte, "other" / byte, "shndx" / half)
    place = ("value" / native, "size" / native)
    return {
        f"{name}_HEADER": c.Struct(
            "type" / half,
            "machine" / half,
            "version" / word,
            "entry" / native,
            "phoff" / native,
            "shoff" / native,
            "flags" / word,
            "ehsize" / half,
            "phentsize" / half,
            "phnum" / half,
            "shentsize" / half,
            "shnum" / half,
            "shstrndx" / half,
        ),
        f"{name}_SECTION": c.Struct(
            "name" / word,
            "type" / word,
            "flags" / native,
            "addr" / native,
            "offset" / native,
            "size" / native,
            "link" / word,
            "info" / word,
            "addralign" / native,
            "entsize" / native,
        ),
        f"{name}_SEGMENT": c.Struct(
            "type" / word,
            *(flags if is64 else ()),
            "offset" / native,
            "vaddr" / native,
            "paddr" / native,
            "filesz" / native,
            "memsz" / native,
            *(() if is64 else flags),
            "align" / native,
        ),
        f"{name}_SYMBOL": c.Struct("name" / word, *(rest + place if is64 else place + rest)),
    }


LAYOUTS = layouts()

_U32, _U64 = c.Int32un, c.Int64un
_STRING = c.Prefixed(_U32, c.NullStripped(c.GreedyBytes))
_STRINGS = c.PrefixedArray(_U32, _STRING)

FEATURES: dict[str, c.Construct] = {
    "TOTAL_MEM": c.Struct("kib" / _U64),
    "CPU_TOPOLOGY": c.Struct("cores" / _STRINGS, "threads" / _STRINGS),
    "NUMA_TOPOLOGY": c.PrefixedArray(
        _U32,
        c.Struct("node" / _U32, "total_kib" / _U64, "free_kib" / _U64, "cpus" / _STRING),
    ),
    "PMU_MAPPINGS": c.PrefixedArray(_U32, c.Struct("type" / _U32, "name" / _STRING)),
    "GROUP_DESC": c.PrefixedArray(
        _U32, c.Struct("name" / _STRING, "leader" / _U32, "members" / _U32)
    ),
    "CACHE": c.Struct(
        "version" / _U32,
        "caches"
        / c.PrefixedArray(
            _U32,
            c.Struct(
                "level" / _U32,
                "line_size" / _U32,
                "sets" / _U32,
                "ways" / _U32,
                "type" / _STRING,
                "size" / _STRING,
                "cpus" / _STRING,
            ),
        ),
    ),
    "SAMPLE_TIME": c.Struct("first_ns" / _U64, "last_ns" / _U64),
    "CLOCKID": c.Struct("resolution_ns" / _U64),
    "CLOCK_DATA": c.Struct(
        "version" / _U32, "clockid" / _U32, "wall_clock_ns" / _U64, "clockid_time_ns" / _U64
    ),
    "CPU_PMU_CAPS": c.PrefixedArray(_U32, c.Struct("name" / _STRING, "value" / _STRING)),
}
"""Features of perf.data that only `purebpf inspect` reads, by the name in `perf_data.Feature`."""


def perf_event_attr(size: int) -> c.Construct:
    """Struct perf_event_attr as the kernel's BTF lays it out, cut to `size` bytes.

    A bit field gets its own name; members of a union are read from the same bytes.
    """
    fields = [
        name / c.Pointer(offset, _field(code))
        for name, (offset, code) in PERF_EVENT_ATTR.fields.items()
        if offset + struct.calcsize(f"={code}") <= size
    ]
    bits = [
        name / c.Pointer(offset // 64 * 8, _bits(offset % 64, width))
        for name, (offset, width) in PERF_EVENT_ATTR.bits.items()
        if offset + width <= size * 8
    ]
    return c.Struct(*fields, *bits)


def _field(code: str) -> c.Construct:
    return c.FormatField("=", {"I": "L", "i": "l"}.get(code, code))


def _bits(start: int, width: int) -> c.Construct:
    def extract(word: int, _: Any) -> int:
        return word >> start & (1 << width) - 1

    return c.ExprAdapter(c.Int64un, extract, None)


def struct_format(layout: c.Construct) -> tuple[str, tuple[str, ...]]:
    """The format of `struct` without a byte order, and the names of its values.

    A field of a nested layout is joined with an underscore, an element of an array with its number.

    Raises:
        TypeError: a part has no fixed layout that `struct` could read.
    """
    parts = list(_parts(layout, ""))
    return "".join(code for code, _ in parts), tuple(name for _, name in parts if name)


def _parts(part: c.Construct, name: str) -> Iterator[tuple[str, str]]:
    """(format, name) of each value; bytes that are skipped have no name."""
    match part:
        case c.Renamed():
            yield from _parts(part.subcon, f"{name}_{part.name}" if name else part.name)
        case c.Struct():
            for subcon in part.subcons:
                yield from _parts(subcon, name)
        case c.Array():
            for number in range(part.count):
                yield from _parts(part.subcon, f"{name}_{number}")
        case c.FormatField():
            yield {"L": "I", "l": "i"}.get(part.fmtstr[1], part.fmtstr[1]), name
        case c.Bytes():
            yield f"{part.length}s", name
        case c.Padded():
            yield f"{part.length}x", ""
        case _:
            raise TypeError(f"{name}: {type(part).__name__} has no struct format")
