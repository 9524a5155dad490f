"""Objects as older compilers would have written them, made of those of today's."""

from __future__ import annotations

import struct

_R_BPF_64_64 = 1
_R_BPF_64_ABS64 = 2


def with_old_relocations(data: bytes, section: str) -> bytes:
    """The object, one of its SHT_REL sections as of clang 12: R_BPF_64_64 for pointers in data."""
    changed = bytearray(data)
    (headers,) = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    tables = [struct.unpack_from("<IIQQQQIIQQ", data, headers + 64 * n) for n in range(count)]
    strings = tables[names][4]
    (table,) = [t for t in tables if data[strings + t[0] :].startswith(f"{section}\0".encode())]
    for at in range(table[4], table[4] + table[5], 16):
        (kind,) = struct.unpack_from("<I", data, at + 8)
        assert kind == _R_BPF_64_ABS64
        struct.pack_into("<I", changed, at + 8, _R_BPF_64_64)
    return bytes(changed)
