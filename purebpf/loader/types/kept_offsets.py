"""Offsets in the kernel's structs, for which its 5 MB of types were read: purebpf/offsets of the
user's caches.

Kept under the build id of the kernel, which they do not change without. Who may read such a file:
see `CacheFiles`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from purebpf.files.cache_files import CacheFiles, cache_home
from purebpf.loader.host.kernel_build_id import kernel_build_id

__all__ = ["keep_offsets", "kept_offsets"]

_LIMIT = 1 << 16
"""Bytes of all files: some 20 each."""
_LARGEST = 1 << 10
_FARTHEST = 1 << 16


def kept_offsets(struct: str, members: Collection[str]) -> dict[str, int]:
    """The bytes before members of a struct, as an earlier run left them; {}: none did."""
    key = _key(struct, members)
    if not key:
        return {}
    try:
        reader = _files().open(key)
        lines = reader(0, min(reader.size, _LARGEST)).decode("ascii").splitlines()
        kept = {name: int(at) for name, at in map(str.split, lines)}
    except (OSError, ValueError):
        return {}
    is_whole = kept.keys() == set(members) and all(0 <= at < _FARTHEST for at in kept.values())
    return kept if is_whole else {}


def keep_offsets(struct: str, offsets: Mapping[str, int]) -> None:
    """Write them for other runs; nothing raises."""
    if key := _key(struct, offsets):
        _files().keep(key, ["".join(f"{name} {at}\n" for name, at in offsets.items()).encode()])


def _files() -> CacheFiles:
    return CacheFiles(os.path.join(cache_home(), "purebpf", "offsets"), _LIMIT)


def _key(struct: str, members: Collection[str]) -> str:
    build_id = kernel_build_id().hex()
    return f"{build_id}-{struct}-{'-'.join(sorted(members))}" if build_id else ""
