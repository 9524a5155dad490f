"""The file of a library's name: /etc/ld.so.cache, as ldconfig(8) writes it.

Source: glibc, elf/dl-cache.h (cache_file_new), the format since 2.2 and the only one since 2.32.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["cached_libraries"]

_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER = struct.Struct("=20sIIB3xI12x")
_ENTRY = struct.Struct("=iIIIQ")
_FLAGS = {"x86_64": 0x303, "aarch64": 0xA03}
"""What the entries of a machine's 64-bit libraries are marked with."""


def cached_libraries(
    cache: bytes, name: str, machine: str, *, is_prefix: bool = False
) -> Iterator[str]:
    """The paths that the cache has for a library, best first; none if it is not ldconfig's.

    `machine` is the name from uname(2); for an unknown machine, every entry is returned.
    `is_prefix`: also of libraries whose names begin with this one.
    """
    start = max(cache.find(_MAGIC), 0)  # an older cache may come first
    cache = cache[start:]
    if not cache.startswith(_MAGIC) or len(cache) < _HEADER.size:
        return
    _, count, _, _, _ = _HEADER.unpack_from(cache)
    wanted = _FLAGS.get(machine)
    end = min(_HEADER.size + count * _ENTRY.size, len(cache))
    entries = cache[_HEADER.size : end - (end - _HEADER.size) % _ENTRY.size]
    for flags, key, value, _, _ in _ENTRY.iter_unpack(entries):
        if wanted is not None and flags != wanted:
            continue
        library = _text(cache, key)
        if library == name or (is_prefix and library.startswith(name)):
            yield _text(cache, value)


def _text(cache: bytes, offset: int) -> str:
    end = cache.find(b"\0", offset)
    return cache[offset : max(end, 0)].decode("utf-8", "surrogateescape")
