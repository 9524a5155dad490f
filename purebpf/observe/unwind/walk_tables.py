"""`WalkTables`: rules and mappings where the walk in BPF finds them.

The maps of bpf_src/include/unwind_tables.h. Data that a program may have read does not change for a
second after nothing points at it any more.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Hashable, Mapping

from purebpf.closable import Closing
from purebpf.loader.rings.record_types import RecordMap
from purebpf.observe.unwind.file_tables import FileTables, TableFile
from purebpf.observe.unwind.window_cache import WindowCache
from purebpf.observe.unwind.word_shards import SHARD_WORDS, NoRoomError, WordShards
from purebpf.syscall import bpf
from purebpf.syscall.map_sizes import read_sizes
from purebpf.unwind.address_space import AddressSpace
from purebpf.unwind.cfi_file import CfiFile

__all__ = ["WalkTables"]

_MAPPING = struct.Struct("<QQQII")
_MAPPING_WORDS = _MAPPING.size // 4
_MOST_MAPPINGS = SHARD_WORDS // _MAPPING_WORDS
_PROCESS = struct.Struct("<IIQII")
_WORD = (1 << 32) - 1
_UNKNOWN = 0
"""The number of code without rules."""


class _List:
    """Published mappings, which `users` processes have, and the files that they name.

    By `version` the walk tells them from all that were published before.
    """

    __slots__ = ("address", "files", "users", "version", "words")

    def __init__(
        self, address: int, words: int, files: dict[Hashable, TableFile], version: int
    ) -> None:
        self.address = address
        self.words = words
        self.files = files
        self.version = version
        self.users = 0


class WalkTables(Closing):
    """Fills the tables of one loaded program.

    Args:
        maps: the object's maps, by name; they must stay open.
        cache: of windows that were built before; None: the user's.

    Attributes:
        cache: this.
        files: the rules.
    """

    def __init__(self, maps: Mapping[str, RecordMap], cache: WindowCache | None = None) -> None:
        self._procs = maps["procs"]
        self._sizes = read_sizes(self._procs.fileno())
        self._shards = WordShards(maps["shards"])
        self.cache = WindowCache() if cache is None else cache
        self.files = FileTables(maps, self._shards, self.cache)
        self._processes: dict[int, _List] = {}
        self._published = 0
        self._full = 0

    @property
    def full(self) -> int:
        """The entries without room: lists of mappings, files, windows."""
        return self._full + self.files.full

    @property
    def rows(self) -> int:
        """Rows published so far."""
        return self.files.rows

    @property
    def nbytes(self) -> int:
        """The memory of rows, indexes and lists; rules have a map of fixed size."""
        return self._shards.nbytes

    # Processes

    def publish(
        self,
        process: int,
        identity: int,
        space: AddressSpace,
        find: Callable[[Hashable], CfiFile | None],
        *,
        is_forked: bool = False,
    ) -> None:
        """Publish the mappings of a process.

        Args:
            process: its number in the initial pid namespace.
            identity: of the program that it executed, as the walk sends it.
            space: its mappings.
            find: the rules of `CodeMapping.file`.
            is_forked: the process began before the time in `identity`, see `fork`.

        Raises:
            KernelError: the kernel refused an element.
        """
        files: dict[Hashable, TableFile] = {}
        packed = bytearray()
        for mapping in space.mappings[:_MOST_MAPPINGS]:
            file = self._use(mapping.file, find, files)
            bias = mapping.bias & (1 << 64) - 1
            number = file.number if file else _UNKNOWN
            packed += _MAPPING.pack(mapping.start, mapping.end, bias, number, 0)
        words = array("I", bytes(packed))
        try:
            address = self._shards.take(len(words))
        except NoRoomError:
            self._full += 1
            self.files.leave(files)
            return
        self._shards.write(address, words)
        self._published += 1
        version = self._published & _WORD
        to = _List(address, len(words), files, version)
        self._point(process, to, identity, is_forked=is_forked)

    def _use(
        self,
        key: Hashable,
        find: Callable[[Hashable], CfiFile | None],
        files: dict[Hashable, TableFile],
    ) -> TableFile | None:
        """The file of a mapping; it is used once by a list."""
        if key is None or key in files:
            return files.get(key)
        cfi = find(key)
        file = self.files.use(key, cfi) if cfi else None
        if file is not None:
            files[key] = file
        return file

    def fork(self, parent: int, child: int, identity: int) -> None:
        """Say that a process has the mappings of another one, which made it.

        Args:
            parent: its number in the initial pid namespace.
            child: the same of the process it made.
            identity: the time of the kernel's report about the child, and its parent's program.

        Raises:
            KernelError: the kernel refused an element.
        """
        spaces = self._processes.get(parent)
        if spaces is not None:
            self._point(child, spaces, identity, is_forked=True)

    def withdraw(self, process: int) -> None:
        """Forget a process: it ended, or executes something else."""
        spaces = self._processes.pop(process, None)
        if spaces is not None:
            key = process.to_bytes(4, "little")
            bpf.map_delete_elem(self._procs.fileno(), key, known=self._sizes)
            self._leave(spaces)

    def _point(self, process: int, to: _List, identity: int, *, is_forked: bool) -> None:
        if process not in self._processes and len(self._processes) >= self._procs.max_entries:
            self.withdraw(next(iter(self._processes)))
        to.users += 1
        count = to.words // _MAPPING_WORDS
        key = process.to_bytes(4, "little")
        value = _PROCESS.pack(to.address, count, identity, is_forked, to.version)
        bpf.map_update_elem(self._procs.fileno(), key, value, known=self._sizes)
        before = self._processes.pop(process, None)
        self._processes[process] = to
        if before is not None:
            self._leave(before)

    def _leave(self, before: _List) -> None:
        before.users -= 1
        if not before.users:
            self._shards.give_back(before.address, before.words)
            self.files.leave(before.files)

    def rest(self) -> None:
        """Give back the memory of files that no process has had mapped since the last call."""
        self.files.rest()
        self._shards.shrink()

    def close(self) -> None:
        """Unmap the tables; programs keep theirs. Again is harmless."""
        self.files.close()
        self._shards.close()
