"""`FileTables`: the rules of files where the walk in BPF finds them.

A file has a number (`exes`), an index of its windows and their blocks (`shards`), and rules
(`rules`): the maps of bpf_src/include/unwind_tables.h. The first request publishes a small file
whole, and also a file that an earlier run had whole. Of other files it publishes only the requested
windows; once they are many, the rest follows.

Files without a mapping process stay until they take 4 MiB; then the least recently used ones go. In
a long run, each goes after a whole window. Data that a program may still read does not change for a
second.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Generator, Hashable, Iterator, Mapping

from purebpf.closable import Closing
from purebpf.loader.rings.record_types import RecordMap
from purebpf.observe.unwind.live_files import LiveFiles
from purebpf.observe.unwind.native_machine import native_machine
from purebpf.observe.unwind.pieces import Pieces
from purebpf.observe.unwind.window_cache import WindowCache
from purebpf.observe.unwind.word_shards import NoRoomError, WordShards
from purebpf.syscall import bpf
from purebpf.syscall.memory import Memory
from purebpf.tuples import NamedTuple
from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.machine import I386, X86_64, Machine
from purebpf.unwind.packed_rule import pack_rule
from purebpf.unwind.rows import NO_RULE
from purebpf.unwind.window_file import PackedWindows
from purebpf.unwind.windows import WINDOW_BITS

__all__ = ["WHOLE", "FileTables", "Missing", "TableFile"]

_EXE = struct.Struct("<IIQIIQ")
_RULE_BYTES = 8
_WINDOWED_RULES = 1024
"""Room for the rules of a file that is read window by window. The most in Debian 12 are 883."""
_CALL_SITE = struct.Struct("<Q")
_CALL_SITE_BITS = 48
_WORD = struct.Struct("<I")
_MANY_WINDOWS = 64
"""Of a large file: so many were asked for one by one, then it is worth it to have all. Of gcc's
cc1plus, 60 % of the samples of a minute are copied for the sake of a window, else.
"""
_PIECE_WORDS = 1 << 14
"""Of a large file, blocks are put into pieces of about this many words."""
_CHUNK_WORDS = 1024
"""Blocks of single windows are put into pieces of this many words."""
_UNUSED_WORDS = 1 << 22
"""Words of the files that no process has mapped: those of rustc and LLVM, which soon run again."""
_CROWDED = 0.75
"""The share of any table from which on these files go."""


WHOLE, _CODE = -1, -2
"""In place of a window: all of them; those with code whose instructions were not read."""


class Missing(NamedTuple):
    """A window of a file; `WHOLE` and `_CODE` are several."""

    key: Hashable
    window: int


class TableFile:
    """A file that has a number.

    Attributes:
        number: of the file; in the mappings of processes.
        users: lists of mappings that name it.
        words: memory of its index and blocks.
        table: the numbering of its rules, also once the file is closed and opened again.
        built: windows that were published one by one.
        has_rest: whether all others were to be published once these were many.
        is_whole: all windows are published.
    """

    __slots__ = (
        "built",
        "calls",
        "chunk",
        "chunk_end",
        "first",
        "has_rest",
        "index",
        "is_whole",
        "number",
        "pieces",
        "rules",
        "rules_room",
        "rules_written",
        "table",
        "users",
        "windows",
        "words",
    )

    def __init__(self, number: int, cfi: CfiFile) -> None:
        self.number = number
        self.table = cfi.table
        self.first, self.windows = cfi.first_window, cfi.window_count
        self.users = self.words = self.built = 0
        self.has_rest = self.is_whole = False
        self.index = self.chunk = self.chunk_end = 0
        self.rules = self.rules_room = self.rules_written = 0
        self.pieces: list[tuple[int, int]] = []
        self.calls: set[int] = set()


class FileTables(Closing):
    """Publishes files.

    Args:
        maps: the object's maps, by name; they must stay open.
        shards: for indexes and blocks.
        cache: stores built windows for the next run.

    Attributes:
        full: the entries without room: files, windows, call sites.
        rows: rows published so far.
        evicted: files that went for others.
        unread: code whose instructions are to be read, with its file, for `build`.
    """

    def __init__(
        self, maps: Mapping[str, RecordMap], shards: WordShards, cache: WindowCache
    ) -> None:
        self._exes, self._calls, rules = maps["exes"], maps["call_sites"], maps["rules"]
        self._live = LiveFiles(maps)
        machine = native_machine()
        self._machines = (machine, I386) if machine is X86_64 else (machine,)
        self._shards = shards
        self._cache = cache
        self._memory = Memory(rules.fileno(), rules.max_entries * _RULE_BYTES, writable=True)
        self._rules = Pieces(0, rules.max_entries)
        self._numbers = Pieces(1, self._exes.max_entries)
        self._files: dict[Hashable, TableFile] = {}
        self._unused: dict[Hashable, TableFile] = {}
        self._unused_words = 0
        self._idle: set[Hashable] = set()  # unused since the last `rest`, all the time
        self._no_rules = 0
        self._call_count = 0
        self.full = 0
        self.rows = 0
        self.evicted = 0
        self.unread: dict[Missing, CfiFile] = {}

    @property
    def serves_new_processes(self) -> bool:
        """True if the walk finds files in processes whose mappings are not published."""
        return self._live.is_used

    def __len__(self) -> int:
        return len(self._files)

    # Which files there are

    def use(self, key: Hashable, cfi: CfiFile) -> TableFile | None:
        """A list of mappings is to name a file; None: there is no room, or nothing to unwind by.

        Raises:
            KernelError: the kernel refused an element.
        """
        file = self._files.get(key) or self._add(key, cfi)
        if file is not None:
            file.users += 1
            if self._unused.pop(key, None):
                self._unused_words -= file.words
                self._idle.discard(key)
        return file

    def leave(self, files: Mapping[Hashable, TableFile]) -> None:
        """A list of mappings that named these files is not pointed at any more."""
        for key, file in files.items():
            file.users -= 1
            if not file.users:
                self._unused[key] = file
                self._unused_words += file.words
        self._make_room()

    def _add(self, key: Hashable, cfi: CfiFile) -> TableFile | None:
        if cfi.machine not in self._machines or not cfi.window_count:
            return None
        self._make_room()
        number = self._numbers.take(1)
        if number is None:
            self.full += 1
            return None
        file = self._files[key] = TableFile(number, cfi)
        self._put(file)
        self._live.add(key, cfi, number)
        return file

    def _put(self, file: TableFile, index: int = 0) -> None:
        if index:
            self._shards.order_stores()
        rules = file.rules, file.rules_room
        packed = _EXE.pack(index, file.windows, file.first, *rules, 0)
        bpf.map_update_elem(self._exes.fileno(), file.number.to_bytes(4, "little"), packed)

    def rest(self) -> None:
        """Remove files that no process has had mapped since the last call: otherwise a long run
        would store each program that it ever met.
        """
        for key in self._idle:
            self._take_out(key)
        self._idle = set(self._unused)

    def _make_room(self) -> None:
        while self._unused and (self._unused_words > _UNUSED_WORDS or self._is_crowded()):
            key = next(iter(self._unused))
            self._idle.discard(key)
            self._take_out(key)

    def _take_out(self, key: Hashable) -> None:
        file = self._unused.pop(key)
        self._unused_words -= file.words
        del self._files[key]
        self._live.remove(key, file.number)
        self._evict(file)

    def _is_crowded(self) -> bool:
        """Return True if a table is nearly full, not counting recently released parts."""
        return (
            self._shards.kept > _CROWDED
            or self._rules.kept > _CROWDED * self._rules.size
            or self._numbers.kept > _CROWDED * self._numbers.size
        )

    def _evict(self, file: TableFile) -> None:
        """Take a file out that no list names: only walks that are under way still know it."""
        self._put(file)  # the rules stay, as they are read after the index
        for piece in file.pieces:
            self._shards.give_back(*piece)
        if file.rules_room:
            self._rules.give_back(file.rules, file.rules_room)
        for site in file.calls:
            bpf.map_delete_elem(self._calls.fileno(), _CALL_SITE.pack(site))
        self._call_count -= len(file.calls)
        self._numbers.give_back(file.number, 1)
        self.evicted += 1

    # What is published of them

    def confirm_call(self, key: Hashable, address: int, *, is_entry: bool = False) -> None:
        """Say that a call may have left a return address of a file, given by its own addresses;
        or that none has, as a function begins there (`is_entry`).

        The walk looks at the code before it, unless that is not in memory.

        Raises:
            KernelError: the kernel refused an element.
        """
        file = self._files.get(key)
        if file is None:
            return
        site = file.number << _CALL_SITE_BITS | address & (1 << _CALL_SITE_BITS) - 1
        if site in file.calls:
            return
        if self._call_count >= self._calls.max_entries:
            self.full += 1
            return
        file.calls.add(site)
        self._call_count += 1
        bpf.map_update_elem(self._calls.fileno(), _CALL_SITE.pack(site), _WORD.pack(is_entry))

    def missing(self, key: Hashable, cfi: CfiFile, address: int) -> Missing | None:
        """Return the parts that the walk lacks at an address of a file; None if it has
        everything available.
        """
        file = self._files.get(key)
        window = (address >> WINDOW_BITS) - (file.first if file else 0)
        if file is None or not 0 <= window < file.windows:
            return None
        if not file.index:
            is_whole = cfi.is_small or self._cache.has(cfi.cache_key)
            return Missing(key, WHOLE if is_whole else window)
        return None if self._shards.read_word(file.index + window) else Missing(key, window)

    def missing_rest(self, key: Hashable, cfi: CfiFile) -> Missing | None:
        """Return all windows of a file that lacked many; None otherwise, and the next times."""
        file = self._files.get(key)
        if file is None or file.has_rest or file.built < _MANY_WINDOWS or cfi.is_huge:
            return None
        file.has_rest = True
        return Missing(key, WHOLE)

    def build_ahead(self, key: Hashable, cfi: CfiFile) -> Iterator[None]:
        """Publish a whole file that no walk has lacked yet, in slices. Raises as `build`."""
        yield from cfi.prepare()
        file = self.use(key, cfi)
        if file is None:
            return
        try:
            if not (file.is_whole or cfi.is_huge):
                yield from self.build(Missing(key, WHOLE), cfi)
        finally:
            self.leave({key: file})

    def build(self, missing: Missing, cfi: CfiFile) -> Iterator[None]:
        """Publish the missing parts, in slices of a few milliseconds.

        Raises:
            OverBudgetError: reading the file costs too much.
            KernelError: the kernel refused an element.
        """
        key, window = missing
        yield from cfi.prepare()
        before = self._files.get(key)
        whole = None
        if window == WHOLE and before is not None:
            whole = yield from self._make_whole(cfi, may_load=not before.rules_room)
        file = self._files.get(key)
        if file is None or file is not before:
            return  # it went in between
        self.use(key, cfi)  # or making room could take it out
        try:
            if window == _CODE:
                yield from self._read_code(key, file, cfi)
            elif file.is_whole:
                pass  # it was built in between
            elif whole is not None:
                self._publish_whole(file, whole, _WINDOWED_RULES if cfi.has_unread else 0)
                if cfi.has_unread:
                    self.unread[Missing(key, _CODE)] = cfi
                else:
                    cfi.rest()  # what leads here has its rules from now on
            elif not file.index or not self._shards.read_word(file.index + window):
                self._build_window(file, cfi, window)
        except NoRoomError:
            self.full += 1
        finally:
            self.leave({key: file})

    def _make_whole(
        self, cfi: CfiFile, *, may_load: bool
    ) -> Generator[None, None, PackedWindows | None]:
        """All windows of a file: kept ones, which number the rules in their own way, or its own."""
        windows = self._cache.load(cfi.cache_key, cfi.source) if may_load else None
        if windows is not None:
            return windows
        packed_windows = yield from _packed(cfi)
        if not (cfi.exhausted or cfi.has_unread):
            self._cache.keep(cfi.cache_key, packed_windows, cfi.source)
        return packed_windows

    def _read_code(self, key: Hashable, file: TableFile, cfi: CfiFile) -> Iterator[None]:
        """Publish the windows with code whose instructions had not been read."""
        windows = yield from cfi.reading()
        for number in sorted(windows):
            if not file.users or self._files.get(key) is not file:
                return
            self._build_window(file, cfi, number - file.first)
            yield
        packed_windows = yield from _packed(cfi)
        if not cfi.exhausted:
            self._cache.keep(cfi.cache_key, packed_windows, cfi.source)
        cfi.rest()

    def _publish_whole(self, file: TableFile, whole: PackedWindows, more_rules: int) -> None:
        first, rules, places, blocks = whole
        if first != file.first or len(places) > file.windows:
            return
        self._take_rules(file, len(rules) // _RULE_BYTES + more_rules)
        if len(rules) > file.rules_room * _RULE_BYTES:
            return  # windows stay as they are asked for
        self._memory.view[file.rules * _RULE_BYTES :][: len(rules)] = rules
        file.rules_written = len(rules) // _RULE_BYTES
        index = array("I")
        for begin, end in _cut(places, len(blocks)):
            start = places[begin] - 1
            words = blocks[start : places[end] - 1 if end < len(places) else len(blocks)]
            base = self._take(file, len(words))
            self._shards.write(base, words)
            index.extend([base + place - 1 - start for place in places[begin:end]])
        index.extend([self._empty()] * (file.windows - len(places)))
        if file.index:
            self._publish_rest(file, index)
        else:
            self._publish(file, index)
        self.rows += len(blocks) - len(places)
        file.is_whole = True

    def _publish_rest(self, file: TableFile, index: array[int]) -> None:
        """Make the windows known that are not yet."""
        for window, address in enumerate(index):
            if not self._shards.read_word(file.index + window):
                self._shards.write_word(file.index + window, address)

    def _build_window(self, file: TableFile, cfi: CfiFile, window: int) -> None:
        block = cfi.window(file.first + window)
        self._write_rules(file, cfi)
        if not file.index:
            self._publish(file, array("I", bytes(4 * file.windows)))
        if block[0] == 1 and not block[1]:
            address = self._empty()
        else:
            address = self._take_in_chunk(file, len(block))
            self._shards.write(address, block)
            self.rows += block[0]
        self._shards.write_word(file.index + window, address)
        file.built += 1

    def _publish(self, file: TableFile, places: array[int]) -> None:
        """Publish an index, after its targets."""
        index = self._take(file, file.windows)
        self._shards.write(index, places)
        self._put(file, index)
        file.index = index

    def _take(self, file: TableFile, count: int) -> int:
        self._make_room()
        address = self._shards.take(count)
        file.pieces.append((address, count))
        file.words += count
        return address

    def _take_in_chunk(self, file: TableFile, count: int) -> int:
        """Room for a block: many are small, and go together."""
        if file.chunk + count > file.chunk_end:
            size = max(_CHUNK_WORDS, count)
            file.chunk = self._take(file, size)
            file.chunk_end = file.chunk + size
        address = file.chunk
        file.chunk += count
        return address

    def _empty(self) -> int:
        """The block of a window without rules, one for all."""
        if not self._no_rules:
            self._no_rules = self._shards.take(2)
            self._shards.write(self._no_rules, array("I", (1, NO_RULE)))
        return self._no_rules

    def _take_rules(self, file: TableFile, room: int) -> None:
        if not file.rules_room:
            base = self._rules.take(room)
            if base is None:
                raise NoRoomError
            file.rules, file.rules_room = base, room
            self._put(file)

    def _write_rules(self, file: TableFile, cfi: CfiFile) -> None:
        """Write the new rules; rules above the room stay in user space."""
        self._take_rules(file, _WINDOWED_RULES)
        machine = _machine(cfi)
        for number in range(file.rules_written, min(file.rules_room, len(cfi.table.rules))):
            at = (file.rules + number) * _RULE_BYTES
            rule = cfi.table.rules[number]
            packed = pack_rule(rule, machine, is_none=number == NO_RULE)
            self._memory.view[at : at + _RULE_BYTES] = packed
            file.rules_written = number + 1

    def close(self) -> None:
        """Unmap the rules; programs keep theirs. Again is harmless."""
        self._memory.close()


def _packed(cfi: CfiFile) -> Generator[None, None, PackedWindows]:
    """All windows of a file, with its own numbers of rules, in slices."""
    whole = yield from cfi.cut_whole()
    machine = _machine(cfi)
    rules = b"".join(
        [
            pack_rule(rule, machine, is_none=number == NO_RULE)
            for number, rule in enumerate(cfi.table.rules)
        ]
    )
    return PackedWindows(whole.first, rules, whole.places, whole.blocks)


def _machine(cfi: CfiFile) -> Machine:
    """Return the machine of a file that is published."""
    assert cfi.machine is not None
    return cfi.machine


def _cut(places: array[int], words: int) -> Iterator[tuple[int, int]]:
    """Windows, from a number up to another one: their blocks go together."""
    begin = 0
    for number in range(1, len(places) + 1):
        stop = places[number] - 1 if number < len(places) else words
        if number == len(places) or stop - places[begin] >= _PIECE_WORDS:
            yield begin, number
            begin = number
