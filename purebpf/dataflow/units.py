"""Headers of DWARF units, and the addresses that .debug_aranges gives to units."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from elftools.common.exceptions import DWARFError

from purebpf.tuples import NamedTuple

__all__ = ["Unit", "read_ranges", "read_units"]

_OF_64_BITS = 0xFFFFFFFF
_VERSIONS = range(2, 6)
_STANDARD = 5
_SKELETON, _SPLIT, _TYPE, _SPLIT_TYPE = 4, 5, 2, 6
"""DW_UT_*."""
_ADDRESS = 8
_HEADER = 12
"""Bytes of a header of .debug_aranges in 32-bit DWARF."""


class Unit(NamedTuple):
    """A unit of .debug_info.

    Attributes:
        start: the offset of its header.
        first: the offset of its first entry.
        end: the offset behind it.
        abbreviations: the place of its abbreviations.
        word: bytes of an offset, 4 or 8.
        address: bytes of an address.
        identity: the ID that a skeleton shares with the unit that has its entries; 0: none.
        signature: of a unit of one type, which has the entry at `type`; 0: another unit.
    """

    start: int
    first: int
    end: int
    version: int
    abbreviations: int
    word: int
    address: int
    identity: int = 0
    signature: int = 0
    type: int = 0


def read_units(data: bytes, *, of_types: bool = False) -> list[Unit]:
    """Return the units of .debug_info (DWARF 5, section 7.5.1).

    Args:
        data: the section.
        of_types: it is .debug_types of DWARF 4.

    Raises:
        DWARFError: of an unknown version.
        struct.error: the section is cut.
    """
    found, at = [], 0
    while at < len(data):
        unit = _unit_at(data, at)
        if of_types:
            unit = _with_signature(data, unit)
        found.append(unit)
        at = unit.end
    return found


def _unit_at(data: bytes, start: int) -> Unit:
    (length,) = struct.unpack_from("<I", data, start)
    word, at = 4, start + 4
    if length == _OF_64_BITS:
        (length,) = struct.unpack_from("<Q", data, at)
        word, at = 8, at + 8
    end = at + length
    (version,) = struct.unpack_from("<H", data, at)
    if version not in _VERSIONS:
        raise DWARFError(f"a unit of DWARF {version}")
    offset = "I" if word == 4 else "Q"  # noqa: PLR2004 - bytes
    if version < _STANDARD:
        abbreviations, address = struct.unpack_from(f"<{offset}B", data, at + 2)
        return Unit(start, at + 3 + word, end, version, abbreviations, word, address)
    kind, address, abbreviations = struct.unpack_from(f"<BB{offset}", data, at + 2)
    unit = Unit(start, at + 4 + word, end, version, abbreviations, word, address)
    if kind in (_SKELETON, _SPLIT):
        (identity,) = struct.unpack_from("<Q", data, unit.first)
        return unit._replace(first=unit.first + 8, identity=identity)
    return _with_signature(data, unit) if kind in (_TYPE, _SPLIT_TYPE) else unit


def _with_signature(data: bytes, unit: Unit) -> Unit:
    """Return a unit of one type, whose header goes on with the type's signature and place."""
    offset = "I" if unit.word == 4 else "Q"  # noqa: PLR2004 - bytes
    signature, place = struct.unpack_from(f"<Q{offset}", data, unit.first)
    first = unit.first + 8 + unit.word
    return unit._replace(first=first, signature=signature, type=unit.start + place)


def read_ranges(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield addresses [start, end), and the place of the unit that has them (section 6.1.2).

    Tables of other forms than 64-bit addresses in 32-bit DWARF are left out.
    """
    at = 0
    while at + _HEADER <= len(data):
        length, _, unit, address, segment = struct.unpack_from("<IHIBB", data, at)
        if length == _OF_64_BITS:
            return
        end = min(at + 4 + length, len(data))
        if (address, segment) == (_ADDRESS, 0):
            for start, size in struct.iter_unpack("<QQ", data[at + 16 : end - (end - at) % 16]):
                if size:
                    yield start, start + size, unit
        at = end
