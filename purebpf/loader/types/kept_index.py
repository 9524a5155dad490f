"""The index of the kernel's types, which takes 40 ms to build: purebpf/btf of the user's caches.

It is stored under the build id of the kernel. Every user may read a kernel's types, so the file
holds no secrets; `CacheFiles` says who may write it, and a reader checks that it fits the types.
"""

from __future__ import annotations

import os

from purebpf.btf.types.index_file import pack_index, with_packed_index
from purebpf.btf.types.parse import Btf
from purebpf.errors import FormatError
from purebpf.files.cache_files import CacheFiles, cache_home
from purebpf.loader.host.kernel_build_id import kernel_build_id

__all__ = ["keep_index", "kept_index"]

_LIMIT = 8 << 20
"""Bytes of all files: 760 kB each."""
_LARGEST = 4 << 20


def kept_index(data: bytes | memoryview, source: str) -> Btf | None:
    """Return the kernel's types by the index of an earlier run; None: there is none that fits.

    Args:
        data: the kernel's BTF.
        source: its name in errors.
    """
    if not (build_id := kernel_build_id()):
        return None
    try:
        reader = _files().open(build_id.hex())
        packed = reader(0, reader.size) if reader.size <= _LARGEST else b""
        return with_packed_index(data, packed, source)
    except (OSError, FormatError):
        return None


def keep_index(btf: Btf) -> None:
    """Write the index of the kernel's types for other runs; nothing raises."""
    if not (build_id := kernel_build_id()):
        return
    try:
        packed = pack_index(btf)
    except FormatError:  # look-ups say so
        return
    if 0 < len(packed) <= _LARGEST:
        _files().keep(build_id.hex(), [packed])


def _files() -> CacheFiles:
    return CacheFiles(os.path.join(cache_home(), "purebpf", "btf"), _LIMIT)
