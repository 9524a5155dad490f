"""Lists of DWARF 4 and 5, of locations and of ranges, and expressions of one operation."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from elftools.common.exceptions import DWARFError

from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from elftools.dwarf.dwarfinfo import DWARFInfo

__all__ = [
    "Tables",
    "all_of",
    "list_at",
    "parse_pieces",
    "parse_single",
    "ranges_at",
    "read_number",
    "read_signed",
    "string_at",
]

_LAST = 0x80
_MOST_BITS = 70
_WORD = 8
_BASE = (1 << 64) - 1
"""The start of an entry that sets the base."""
_STANDARD = 5
"""The version of DWARF from which on the lists of split and of whole files are alike."""
_ADDR, _REG0, _REG31, _REGX, _FBREG, _PIECE, _CFA, _ADDRX, _GNU_ADDRX = (
    *(0x03, 0x50, 0x6F, 0x90, 0x91, 0x93, 0x9C, 0xA1, 0xFB),
)
"""DW_OP_*."""


class Tables(NamedTuple):
    """The sections that the numbers in a unit's entries refer to, and where its parts begin there.

    Attributes:
        version: of DWARF.
        is_split: the unit is in a file of its own.
        word: bytes of an offset.
    """

    sections: DWARFInfo
    version: int
    is_split: bool
    word: int
    addresses: int
    strings: int
    locations: int
    ranges: int

    def address(self, number: int) -> int:
        """Return an address of .debug_addr."""
        return _address(all_of(self.sections.debug_addr_sec), self.addresses + number * _WORD)

    def string(self, number: int) -> bytes:
        """Return a string of .debug_str_offsets."""
        offsets = all_of(self.sections.debug_str_offsets_sec)
        return string_at(self.sections.debug_str_sec, self._place(offsets, self.strings, number))

    def location_list(self, number: int) -> int:
        """Return the place of a list in .debug_loclists."""
        lists = all_of(self.sections.debug_loclists_sec)
        return self.locations + self._place(lists, self.locations, number)

    def range_list(self, number: int) -> int:
        """Return the place of a list in .debug_rnglists."""
        lists = all_of(self.sections.debug_rnglists_sec)
        return self.ranges + self._place(lists, self.ranges, number)

    def _place(self, table: bytes, base: int, number: int) -> int:
        at = base + number * self.word
        return int.from_bytes(table[at : at + self.word], "little")


def string_at(section: Any, at: int) -> bytes:  # noqa: ANN401 - pyelftools' section
    """Return the string at an offset of a section."""
    whole = all_of(section)
    return whole[at : whole.index(b"\0", at)]


def all_of(section: Any) -> bytes:  # noqa: ANN401 - pyelftools' section, which is in memory
    """Return the contents of a section.

    Raises:
        DWARFError: the file has no such section.
    """
    if section is None:
        raise DWARFError("a section is missing")
    contents: bytes = section.stream.getvalue()
    return contents


def read_number(data: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned number in LEB128, and the offset behind it.

    Raises:
        DWARFError: it has more than 64 bits.
        IndexError: it is cut.
    """
    byte = data[at]
    if byte < _LAST:
        return byte, at + 1
    number, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        number |= (byte & 0x7F) << shift
        if byte < _LAST:
            return number, at + 1
        shift += 7
        if shift > _MOST_BITS:
            raise DWARFError("a number of more than 64 bits")


def read_signed(data: bytes, at: int) -> tuple[int, int]:
    """Return a signed number in LEB128, and the offset behind it."""
    number, end = read_number(data, at)
    bits = 7 * (end - at)
    return number - (1 << bits) if number >> (bits - 1) else number, end


def list_at(of: Tables, at: int, base: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield the addresses [start, end) and the expression of each entry of a location list.

    Args:
        of: the tables of the variable's unit.
        at: the place of the list in its section.
        base: the address that the list counts from.

    Raises:
        DWARFError, IndexError, struct.error: the list is damaged.
    """
    if of.version >= _STANDARD:
        yield from _numbered(of, all_of(of.sections.debug_loclists_sec), at, base, _LOCATIONS)
    elif of.is_split:
        yield from _numbered(of, all_of(of.sections.debug_loc_sec), at, base, _GNU_LOCATIONS)
    else:
        yield from _pairs(all_of(of.sections.debug_loc_sec), at, base, has_expressions=True)


def ranges_at(of: Tables, at: int, base: int) -> Iterator[tuple[int, int]]:
    """Yield the addresses [start, end) of a range list; it takes the arguments of `list_at`.

    Raises:
        DWARFError, IndexError, struct.error: the list is damaged.
    """
    if of.version >= _STANDARD:
        found = _numbered(of, all_of(of.sections.debug_rnglists_sec), at, base, _RANGES)
    else:
        ranges = all_of(of.sections.debug_ranges_sec)
        at += of.ranges if of.is_split else 0
        found = _pairs(ranges, at, base, has_expressions=False)
    for start, end, _ in found:
        yield start, end


class _Kind(Enum):
    """The contents of an entry of a list."""

    BASE_INDEX = auto()
    INDEXES = auto()
    INDEX_LENGTH = auto()
    OFFSETS = auto()
    DEFAULT = auto()
    BASE = auto()
    ADDRESSES = auto()
    ADDRESS_LENGTH = auto()


class _Form(NamedTuple):
    """The spelling of a list: kinds by number, and the widths of its fields.

    Attributes:
        is_short: offsets and lengths have four bytes, and not LEB128.
        expression: bytes of an expression's length; 0: LEB128; None: there are no expressions.
    """

    kinds: Mapping[int, _Kind]
    is_short: bool
    expression: int | None


_LOCATIONS = _Form(dict(enumerate(_Kind, 1)), is_short=False, expression=0)
"""DW_LLE_* of .debug_loclists (DWARF 5, section 7.7.3)."""
_RANGES = _Form(
    dict(enumerate((kind for kind in _Kind if kind is not _Kind.DEFAULT), 1)),
    is_short=False,
    expression=None,
)
"""DW_RLE_* of .debug_rnglists (DWARF 5, section 7.25)."""
_GNU_LOCATIONS = _Form(dict(enumerate(list(_Kind)[:4], 1)), is_short=True, expression=2)
"""DW_LLE_GNU_* of .debug_loc.dwo (gcc.gnu.org/wiki/DebugFission)."""


def _numbered(
    of: Tables, data: bytes, at: int, base: int, form: _Form
) -> Iterator[tuple[int, int, bytes]]:
    """Yield a list whose entries begin with the number of their kind."""

    def length_at(at: int) -> tuple[int, int]:
        if form.is_short:
            return int.from_bytes(data[at : at + 4], "little"), at + 4
        return read_number(data, at)

    while (number := data[at]) != 0:
        at += 1
        kind = form.kinds.get(number)
        start = end = 0
        if kind is _Kind.OFFSETS:
            start, at = length_at(at)
            end, at = length_at(at)
            start, end = base + start, base + end
        elif kind in (_Kind.BASE_INDEX, _Kind.INDEXES, _Kind.INDEX_LENGTH):
            number, at = read_number(data, at)
            start = of.address(number)
            if kind is _Kind.INDEXES:
                number, at = read_number(data, at)
                end = of.address(number)
        elif kind in (_Kind.BASE, _Kind.ADDRESSES, _Kind.ADDRESS_LENGTH):
            start, at = _address(data, at), at + _WORD
            if kind is _Kind.ADDRESSES:
                end, at = _address(data, at), at + _WORD
        elif kind is not _Kind.DEFAULT:
            raise DWARFError(f"a list with an entry of kind {number}")
        if kind in (_Kind.BASE_INDEX, _Kind.BASE):
            base = start
            continue
        if kind in (_Kind.INDEX_LENGTH, _Kind.ADDRESS_LENGTH):
            length, at = length_at(at)
            end = start + length
        expression = b""
        if form.expression is not None:
            if form.expression:
                length, at = int.from_bytes(data[at : at + 2], "little"), at + 2
            else:
                length, at = read_number(data, at)
            expression, at = data[at : at + length], at + length
        if kind is not _Kind.DEFAULT:  # it holds where no other does
            yield start, end, expression


def _pairs(
    data: bytes, at: int, base: int, *, has_expressions: bool
) -> Iterator[tuple[int, int, bytes]]:
    """Yield a list of .debug_loc or .debug_ranges (DWARF 4, sections 2.6.2 and 2.17.3)."""
    while True:
        start, end = struct.unpack_from("<QQ", data, at)
        at += 2 * _WORD
        if start == _BASE:
            base = end
            continue
        if not (start or end):
            return
        expression = b""
        if has_expressions:
            length = int.from_bytes(data[at : at + 2], "little")
            expression, at = data[at + 2 : at + 2 + length], at + 2 + length
        yield base + start, base + end, expression


def _address(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + _WORD], "little")


def parse_single(expression: bytes) -> tuple[str, int] | None:
    """Return the operation of an expression that has exactly one, and its operand.

    Returns:
        `DW_OP_reg` and the number of a register, `DW_OP_fbreg` and an offset, `DW_OP_addr` and an
        address, `DW_OP_addrx` and the number of one, or `DW_OP_call_frame_cfa` and 0; None: it is
        another one, or there are several.
    """
    if not expression:
        return None
    operation, end, number = expression[0], 1, 0
    if _REG0 <= operation <= _REG31:
        name, number = "DW_OP_reg", operation - _REG0
    elif operation == _FBREG:
        name = "DW_OP_fbreg"
        number, end = read_signed(expression, 1)
    elif operation == _REGX:
        name = "DW_OP_reg"
        number, end = read_number(expression, 1)
    elif operation == _ADDR:
        name, number, end = "DW_OP_addr", _address(expression, 1), 1 + _WORD
    elif operation in (_ADDRX, _GNU_ADDRX):
        name = "DW_OP_addrx"
        number, end = read_number(expression, 1)
    elif operation == _CFA:
        name = "DW_OP_call_frame_cfa"
    else:
        return None
    return (name, number) if end == len(expression) else None


def parse_pieces(expression: bytes) -> list[tuple[int, int]]:
    """Return the registers of eight bytes, and their places in the value, of a list of pieces.

    Pieces behind one that is neither a register nor unknown are not read.
    """
    found, offset, at = [], 0, 0
    while at < len(expression):
        register = None
        if _REG0 <= expression[at] <= _REG31:
            register, at = expression[at] - _REG0, at + 1
        if at >= len(expression) or expression[at] != _PIECE:
            break
        size, at = read_number(expression, at + 1)
        if register is not None and size == _WORD:
            found.append((register, offset))
        offset += size
    return found
