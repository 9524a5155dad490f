"""Symbol tables that were read before, in files: $XDG_CACHE_HOME/purebpf/symbols, or ~/.cache.

A table is stored under the build id of its file and the owner of the file: so no user can give
names to other users' programs by writing their build id into a file. A cache is only used when its
directory is the user's own, and no other user may change it or a directory that it is in; otherwise
there is none, which changes nothing but the time. Files that were not used for the longest time go
first.
"""

from __future__ import annotations

import os

from purebpf.errors import FormatError
from purebpf.files.cache_files import CacheFiles, cache_home, own_directory
from purebpf.files.held_files import HeldFiles
from purebpf.symbols.symbol_table import SymbolTable
from purebpf.symbols.table_file import fits, open_table, pieces

__all__ = ["SymbolCache", "cache_home", "own_directory"]

_LIMIT = 256 << 20
"""Bytes of all files together; one that needs more than half of them is not kept."""

_WORTH = 1 << 10
"""Symbols from which a table is kept: fewer are read in a millisecond."""


class SymbolCache:
    """Tables by key, shared by all commands of a user. Nothing raises.

    Args:
        directory: where the files are; None: where the user's caches are.
        limit: bytes of all files together.
        held: descriptors of files that are read again and again; else none is held.
    """

    def __init__(
        self,
        directory: str | None = None,
        limit: int = _LIMIT,
        held: HeldFiles | None = None,
    ) -> None:
        self.directory = directory or os.path.join(cache_home(), "purebpf", "symbols")
        self._limit = limit
        self._files = CacheFiles(self.directory, limit, held)

    def load(self, key: str) -> SymbolTable | None:
        """The table with that key; None when there is none, or none that can be used."""
        try:
            reader = self._files.open(key)
            return open_table(reader, reader.size, reader.path)
        except (OSError, FormatError):
            return None

    def keep(self, key: str, table: SymbolTable) -> None:
        """Write a table that is worth it, for another run, or this one later."""
        if len(table) >= _WORTH and table.nbytes <= self._limit // 2 and fits(table):
            self._files.keep(key, pieces(table))

    def drop(self, key: str) -> None:
        """Remove a table that turned out to be damaged."""
        self._files.drop(key)
