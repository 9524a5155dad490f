"""LEB128 numbers and encoded pointers.

Encodings: Linux Standard Base, Core Generic, "DWARF Exception Header Encoding". LEB128: DWARF 5,
section 7.6. Numbers of more than 64 bits are an error: a hostile one would cost quadratic time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from purebpf.tuples import NamedTuple

__all__ = ["NO_BASES", "OMIT", "Bases", "EncodingError", "pointer", "pointer_size", "sleb", "uleb"]

OMIT = 0xFF
ULEB, SLEB = 1, 9
_PCREL, _TEXTREL, _DATAREL, _FUNCREL, _ALIGNED = 0x10, 0x20, 0x30, 0x40, 0x50
_INDIRECT = 0x80
_FORMATS = {
    form: struct.Struct(f"<{code}")
    for form, code in (
        (0, "Q"),
        (2, "H"),
        (3, "I"),
        (4, "Q"),
        (8, "q"),
        (10, "h"),
        (11, "i"),
        (12, "q"),
    )
}
_WORD = (1 << 64) - 1


class EncodingError(Exception):
    """A number that is not well formed, or passes the end of its bytes."""


class Bases(NamedTuple):
    """The bases of encoded pointers: addresses, None where the file does not give one.

    `peek` gives the word at an address, None where the file has none.
    """

    text: int | None = None
    data: int | None = None
    function: int | None = None
    peek: Callable[[int], int | None] | None = None


NO_BASES = Bases()


def uleb(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number, and where it ends.

    Raises:
        EncodingError: it passes the end of the bytes, or has more than 10 of them.
    """
    number = shift = 0
    for byte in data[at : at + 10]:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at + shift // 7
    raise EncodingError


def sleb(data: bytes, at: int) -> tuple[int, int]:
    """A signed LEB128 number, and where it ends.

    Raises:
        EncodingError: it passes the end of the bytes, or has more than 10 of them.
    """
    number, end = uleb(data, at)
    if data[end - 1] & 0x40:
        number -= 1 << 7 * (end - at)
    return number, end


def pointer_size(encoding: int) -> int:
    """Bytes of a pointer in a given encoding; 0 if that varies (LEB128).

    Raises:
        EncodingError: the encoding does not exist.
    """
    form = encoding & 0x0F
    if form in (ULEB, SLEB):
        return 0
    layout = _FORMATS.get(form)
    if layout is None:
        raise EncodingError
    return layout.size


def pointer(
    data: bytes, at: int, encoding: int, address: int, bases: Bases = NO_BASES
) -> tuple[int, int]:
    """A pointer, and where it ends.

    Args:
        data: the bytes.
        at: where in them it starts.
        encoding: DW_EH_PE_*.
        address: the address of the pointer itself.
        bases: the bases that it may be relative to.

    Raises:
        EncodingError: it passes the end, or refers to something that the file does not have.
    """
    form = encoding & 0x0F
    if form == ULEB:
        number, end = uleb(data, at)
    elif form == SLEB:
        number, end = sleb(data, at)
    else:
        layout = _FORMATS.get(form)
        if layout is None or at + layout.size > len(data):
            raise EncodingError
        (number,) = layout.unpack_from(data, at)
        end = at + layout.size
    base = _base(encoding & 0x70, address, bases)
    if base is None:
        raise EncodingError
    number = number + base & _WORD
    if encoding & _INDIRECT:
        word = bases.peek(number) if bases.peek else None
        if word is None:
            raise EncodingError
        number = word
    return number, end


def _base(application: int, address: int, bases: Bases) -> int | None:
    if not application:
        return 0
    if application == _PCREL:
        return address
    return {_TEXTREL: bases.text, _DATAREL: bases.data, _FUNCREL: bases.function}.get(application)
