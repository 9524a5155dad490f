# ruff: noqa: SLF001 -- it reads and makes indexes of a Btf
"""The index of a blob's types as bytes, which another run reads instead of indexing again.

    header    magic (with the byte order), types, CRC-32 of the rest, fingerprint of the blob
    starts    u32, the first word of each type
    names     u16, the low bits of the offset of each type's name, as `NameIndex` has them
    flavoured u32, the offset of each name with a flavour

The index of a vmlinux takes 40 ms of CPU time to build, and 1 ms to read: 760 kB for 126,586 types.
"""

from __future__ import annotations

import struct
import sys
from array import array
from zlib import crc32

from purebpf.btf.types.name_index import NameIndex
from purebpf.btf.types.parse import Btf, with_starts
from purebpf.errors import FormatError

__all__ = ["pack_index", "with_packed_index"]

_MAGIC = b"purebpf types1" + (b"<" if sys.byteorder == "little" else b">")
_HEADER = struct.Struct("=15sxIII")
_START = 4
_NAME = 2
_SAMPLED = 61
"""The fingerprint covers one byte of so many, besides the header."""
_BTF_HEADER = 32


def pack_index(btf: Btf) -> bytes:
    """Return the index of a blob without a base; b"": names share their ends, which no index holds.

    Raises:
        FormatError: the blob's names are malformed.
    """
    try:
        names, flavoured = btf._name_index().packed(), btf._strings.flavoured()
    except ValueError as error:
        raise FormatError(btf.source, "strings", str(error)) from None
    if not names:
        return b""
    body = btf._offsets.tobytes() + names + array("I", flavoured).tobytes()
    return _HEADER.pack(_MAGIC, len(btf._offsets), crc32(body), _fingerprint(btf.data)) + body


def with_packed_index(data: bytes | memoryview, packed: bytes, source: str) -> Btf:
    """Return the Btf of a blob without a base, given `pack_index` of the same blob.

    Raises:
        FormatError: the blob is malformed, or the index is damaged or of another blob.
    """
    if len(packed) < _HEADER.size:
        raise FormatError(source, "index", f"{len(packed)} bytes are too short")
    magic, count, checksum, fingerprint = _HEADER.unpack_from(packed)
    body = memoryview(packed)[_HEADER.size :]
    names, flavoured = count * _START, count * (_START + _NAME)
    if magic != _MAGIC or len(body) < flavoured or crc32(body) != checksum:
        raise FormatError(source, "index", "it is damaged, or of another version")
    if fingerprint != _fingerprint(data):
        raise FormatError(source, "index", "it belongs to other types")
    btf = with_starts(data, array("I", body[:names].tobytes()), source)
    try:
        given = btf._words, btf._offsets, btf._strings, body[names:flavoured].tobytes()
        btf._names = NameIndex.unpacked(*given)
        btf._strings.set_flavoured(array("I", body[flavoured:].tobytes()))
    except ValueError as error:
        raise FormatError(source, "index", str(error)) from None
    return btf


def _fingerprint(data: bytes | memoryview) -> int:
    """A checksum of the header, which has all sizes, and of a part of the rest."""
    return crc32(bytes(data[::_SAMPLED]), crc32(data[:_BTF_HEADER]))
