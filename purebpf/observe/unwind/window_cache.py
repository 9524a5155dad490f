"""Windows of rules that were built before, in files: purebpf/windows of the user's caches.

Windows are stored as symbol tables are: under the build id of the file and its owner, so that no
user can give rules to other users' programs by writing their build id into a file; a file without
a build id by its identity on this machine.
"""

from __future__ import annotations

import os

from purebpf.errors import FormatError
from purebpf.files.cache_files import CacheFiles, cache_home
from purebpf.unwind.window_file import PackedWindows, Source, pack_windows, read_windows

__all__ = ["WindowCache"]

_LIMIT = 256 << 20
"""Bytes of all files together."""
_WORTH = 2048
"""Words of blocks from which windows are kept: fewer are made in 2 ms."""
_LARGEST = 32 << 20
"""Bytes of a file; those of a `CfiFile` that is not huge take half of it."""


class WindowCache:
    """Windows by key, shared by all commands of a user. Holds no descriptors; nothing raises.

    Args:
        directory: where the files are; None: where the user's caches are.
        limit: bytes of all files together.

    Attributes:
        hits: files found.
        rejected: files that were damaged, or of another file.
    """

    def __init__(self, directory: str | None = None, limit: int = _LIMIT) -> None:
        where = directory or os.path.join(cache_home(), "purebpf", "windows")
        self._files = CacheFiles(where, limit)
        self._limit = limit
        self.hits = 0
        self.rejected = 0

    def has(self, key: str) -> bool:
        """Return True if there are windows with that key; they may turn out to be useless."""
        return bool(key) and self._files.has(key)

    def load(self, key: str, source: Source) -> PackedWindows | None:
        """The windows with that key; None when there are none that can be used."""
        if not key:
            return None
        try:
            reader = self._files.open(key)
            data = reader(0, reader.size) if reader.size <= _LARGEST else b""
            windows = read_windows(data, source, reader.path)
        except OSError:
            return None
        except FormatError:
            self.rejected += 1
            return None
        self.hits += 1
        return windows

    def keep(self, key: str, windows: PackedWindows, source: Source) -> None:
        """Write windows that are worth it."""
        if not key or len(windows.blocks) < _WORTH:
            return
        data = pack_windows(windows, source)
        if len(data) <= min(_LARGEST, self._limit // 2):
            self._files.keep(key, [data])
