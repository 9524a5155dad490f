"""The windows of a file, stored as a file for a cache.

header   magic (with the byte order), CRC-32 of the rest; its sources: text, section;
         the first window; windows, rules, words of blocks
rules    8 bytes each, as BPF reads them
places   u32 for each window: 1 + the place of its block
blocks   u32, see purebpf.unwind.windows
"""

from __future__ import annotations

import struct
import sys
from array import array
from operator import add
from zlib import crc32

from purebpf.errors import FormatError
from purebpf.tuples import NamedTuple
from purebpf.unwind.windows import OFFSET_BITS

__all__ = ["PackedWindows", "Source", "pack_windows", "read_windows"]

_MAGIC = b"purebpf windowsA" + (b"<" if sys.byteorder == "little" else b">")
_HEADER = struct.Struct("=17s3xI")
_SHAPE = struct.Struct("=5QIII4x")
_RULE_BYTES = 8
_BYTES = 256


class Source(NamedTuple):
    """The source of windows, besides the build id: another file differs in it.

    Attributes:
        text_start, text_end: the addresses that the code lies between.
        section_address, section_size: of .eh_frame.
    """

    text_start: int
    text_end: int
    section_address: int
    section_size: int


class PackedWindows(NamedTuple):
    """All windows of a file, and its rules, as BPF reads them.

    Attributes:
        first: number of the first window.
        rules: 8 bytes each.
        places: of each window, 1 + where in `blocks` it is.
        blocks: one after the other.
    """

    first: int
    rules: bytes
    places: array[int]
    blocks: array[int]


def pack_windows(windows: PackedWindows, source: Source) -> bytes:
    """The contents of the file."""
    first, rules, places, blocks = windows
    counts = len(places), len(rules) // _RULE_BYTES, len(blocks)
    body = _SHAPE.pack(*source, first, *counts) + rules + places.tobytes() + blocks.tobytes()
    return _HEADER.pack(_MAGIC, crc32(body)) + body


def read_windows(data: bytes, source: Source, name: str) -> PackedWindows:
    """The windows in such a file.

    Args:
        data: all of it.
        source: the source that it must have been made of.
        name: its name in errors.

    Raises:
        FormatError: it is not such a file, of another version, machine or source, or damaged.
    """
    start = _HEADER.size + _SHAPE.size
    if len(data) < start:
        raise FormatError(name, "header", "truncated")
    magic, checksum = _HEADER.unpack_from(data)
    *made_of, first, window_count, rule_count, block_words = _SHAPE.unpack_from(data, _HEADER.size)
    if magic != _MAGIC or tuple(made_of) != source:
        raise FormatError(name, "header", "not the windows of this file")
    size = start + _RULE_BYTES * rule_count + 4 * window_count + 4 * block_words
    if size != len(data) or crc32(memoryview(data)[_HEADER.size :]) != checksum:
        raise FormatError(name, "contents", "damaged")
    places_at = start + _RULE_BYTES * rule_count
    blocks_at = places_at + 4 * window_count
    places = array("I", data[places_at:blocks_at])
    blocks = array("I", data[blocks_at:])
    _check(places, blocks, rule_count, name)
    return PackedWindows(first, data[start:places_at], places, blocks)


def _check(places: array[int], blocks: array[int], rule_count: int, name: str) -> None:
    """Every window lies in the blocks, and every rule is there."""
    end = len(blocks)
    if places and not 0 < min(places) <= max(places) < end:
        raise FormatError(name, "windows", f"from {min(places)} to {max(places)} of {end} words")
    counts = [*map((array("I", (0,)) + blocks).__getitem__, places)]
    if places and not (min(counts) and max(map(add, places, counts)) <= end):
        raise FormatError(name, "windows", f"one ends behind {end} words, or has none")
    if blocks and _reach(blocks, rule_count << OFFSET_BITS):
        raise FormatError(name, "rules", f"there are {rule_count}")


def _reach(blocks: array[int], limit: int) -> bool:
    """Return True if a word is as large as a limit.

    Making a number of each of a million words takes longer than all other work on a file. So only
    words whose upper half reaches the limit's are compared: a few hundred.
    """
    high = limit >> 16
    if sys.byteorder == "little" and 0 < high < _BYTES:
        data = blocks.tobytes()
        fourth, third = data[3::4], data[2::4]
        if fourth.strip(b"\0") or third.translate(None, bytes(range(high + 1))):
            return True
        if third.count(high) < len(blocks) // 8:
            at = third.find(high)
            while at >= 0 and blocks[at] < limit:
                at = third.find(high, at + 1)
            return at >= 0
    return max(blocks) >= limit
