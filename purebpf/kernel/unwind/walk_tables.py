"""`WalkTables`: rules and mappings where the walk in BPF finds them.

The maps of bpf_src/include/unwind_tables.h. Files of few rows are published whole with the first
window that is asked for, of others only the windows asked for. Nothing is ever taken back but the
list of a process, so that an address that a program has read stays good.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from purebpf.closable import Closing
from purebpf.kernel.rings.record_types import RecordMap
from purebpf.kernel.unwind.word_shards import SHARD_WORDS, NoRoomError, WordShards
from purebpf.syscall import bpf
from purebpf.syscall.memory import Memory
from purebpf.unwind.address_space import AddressSpace
from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.machine import X86_64
from purebpf.unwind.packed_rule import pack_rule
from purebpf.unwind.rows import NO_RULE
from purebpf.unwind.windows import WINDOW_BITS

__all__ = ["WalkTables"]

_MAPPING = struct.Struct("<QQQII")
_MAPPING_WORDS = _MAPPING.size // 4
_MOST_MAPPINGS = SHARD_WORDS // _MAPPING_WORDS
_EXE = struct.Struct("<IIQIIQ")
_PROCESS = struct.Struct("<IIQI4x")
_RULE_BYTES = 8
_WINDOWED_RULES = 1024
"""Room for the rules of a file that is read window by window. The most in Debian 12 are 883."""
_UNKNOWN = 0
"""The number of code without rules."""
_CALL_SITE = struct.Struct("<Q")
_CALL_SITE_BITS = 48


class _File(NamedTuple):
    """A file's number, and where its index is."""

    number: int
    index_word: int
    first: int
    windows: int


class _Rules:
    """Where the rules of a file are: `written` of at most `room`."""

    def __init__(self, base: int, room: int) -> None:
        self.base = base
        self.room = room
        self.written = 0


class _List:
    """Published mappings, which `users` processes have."""

    __slots__ = ("address", "users", "words")

    def __init__(self, address: int, words: int) -> None:
        self.address = address
        self.words = words
        self.users = 0


class WalkTables(Closing):
    """Fills the tables of one loaded program.

    Args:
        maps: those of the object, by name; they must stay open.

    Attributes:
        full: what found no room: files, windows, processes.
        rows: rows published.
    """

    def __init__(self, maps: Mapping[str, RecordMap]) -> None:
        self._exes, self._procs = maps["exes"], maps["procs"]
        self._calls = maps["call_sites"]
        self._call_sites: set[int] = set()
        self._shards = WordShards(maps["shards"])
        rules = maps["rules"]
        self._memory = Memory(rules.fileno(), rules.max_entries * _RULE_BYTES, writable=True)
        self._rules_left = rules.max_entries
        self._files: dict[Hashable, _File] = {}
        self._rules: dict[Hashable, _Rules] = {}
        self._processes: dict[int, _List] = {}
        self._no_rules = 0
        self.full = 0
        self.rows = 0

    @property
    def nbytes(self) -> int:
        """Memory of rows, indexes and lists; rules have a map of their own size."""
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
        """Say what a process has mapped.

        Args:
            process: its number in the initial pid namespace.
            identity: of the program that it executed, as the walk sends it.
            space: its mappings.
            find: the rules of `CodeMapping.file`.
            is_forked: the process began before what `identity` says, see `fork`.

        Raises:
            KernelError: the kernel refused an element.
        """
        packed = bytearray()
        for mapping in space.mappings[:_MOST_MAPPINGS]:
            number = self._number(mapping.file, find)
            bias = mapping.bias & (1 << 64) - 1
            packed += _MAPPING.pack(mapping.start, mapping.end, bias, number, 0)
        words = array("I", bytes(packed))
        try:
            address = self._shards.take_reusable(len(words))
        except NoRoomError:
            self.full += 1
            return
        self._shards.write(address, words)
        self._point(process, _List(address, len(words)), identity, is_forked=is_forked)

    def fork(self, parent: int, child: int, identity: int) -> None:
        """Say that a process has the mappings of another one, which made it.

        Args:
            parent: its number in the initial pid namespace.
            child: the same of the process it made.
            identity: when the kernel reported the child, and what its parent executes.

        Raises:
            KernelError: the kernel refused an element.
        """
        known = self._processes.get(parent)
        if known is not None:
            self._point(child, known, identity, is_forked=True)

    def withdraw(self, process: int) -> None:
        """Forget a process: it ended, or executes something else."""
        known = self._processes.pop(process, None)
        if known is not None:
            bpf.map_delete_elem(self._procs.fileno(), process.to_bytes(4, "little"))
            self._leave(known)

    def _point(self, process: int, to: _List, identity: int, *, is_forked: bool) -> None:
        if process not in self._processes and len(self._processes) >= self._procs.max_entries:
            self.withdraw(next(iter(self._processes)))
        to.users += 1
        count = to.words // _MAPPING_WORDS
        _put(self._procs, process, _PROCESS.pack(to.address, count, identity, is_forked))
        before = self._processes.pop(process, None)
        self._processes[process] = to
        if before is not None:
            self._leave(before)

    def _leave(self, before: _List) -> None:
        before.users -= 1
        if not before.users:
            self._shards.give_back(before.address, before.words)

    # Files

    def _number(self, key: Hashable, find: Callable[[Hashable], CfiFile | None]) -> int:
        if key is None:
            return _UNKNOWN
        known = self._files.get(key)
        if known is None:
            cfi = find(key)
            if cfi is None or cfi.machine is not X86_64:
                return _UNKNOWN
            known = self._add(key, cfi)
        return known.number if known else _UNKNOWN

    def _add(self, key: Hashable, cfi: CfiFile) -> _File | None:
        """Number a file; none of its windows are there yet."""
        number, windows = len(self._files) + 1, cfi.window_count
        if number >= self._exes.max_entries or not windows:
            self.full += 1
            return None
        try:
            index = self._shards.take(windows)
        except NoRoomError:
            self.full += 1
            return None
        added = self._files[key] = _File(number, index, cfi.first_window, windows)
        self._put_file(added, 0, 0)
        return added

    def _put_file(self, file: _File, rules: int, count: int) -> None:
        packed = _EXE.pack(file.index_word, file.windows, file.first, rules, count, 0)
        _put(self._exes, file.number, packed)

    def confirm_call(self, key: Hashable, address: int) -> None:
        """Say that a call may have left a return address of a file, given by its own addresses.

        The walk looks at the code before it, unless that is not in memory.

        Raises:
            KernelError: the kernel refused an element.
        """
        file = self._files.get(key)
        if file is None:
            return
        if len(self._call_sites) >= self._calls.max_entries:
            self.full += 1
            return
        site = file.number << _CALL_SITE_BITS | address & (1 << _CALL_SITE_BITS) - 1
        if site not in self._call_sites:
            self._call_sites.add(site)
            bpf.map_update_elem(self._calls.fileno(), _CALL_SITE.pack(site), bytes(4))

    def build(self, key: Hashable, cfi: CfiFile, address: int) -> bool:
        """Publish what the walk needs at an address of a file, unless it is there.

        Returns:
            whether there was anything to do.

        Raises:
            OverBudgetError: reading the file costs too much.
            KernelError: the kernel refused an element.
        """
        file = self._files.get(key)
        if file is None:
            return False
        window = (address >> WINDOW_BITS) - file.first
        if not 0 <= window < file.windows or self._shards.read_word(file.index_word + window):
            return False
        try:
            if not (cfi.is_small and key not in self._rules and self._build_whole(key, cfi)):
                self._build_window(key, cfi, window)
        except NoRoomError:
            self.full += 1
            return False
        return True

    def _build_whole(self, key: Hashable, cfi: CfiFile) -> bool:
        """Publish all windows; False if they are too many words for one piece."""
        file = self._files[key]
        whole = cfi.whole()
        if len(whole.blocks) > SHARD_WORDS:
            return False
        base = self._shards.take(len(whole.blocks)) if whole.blocks else 0
        self._write_rules(key, cfi, len(cfi.table.rules))
        self._shards.write(base, whole.blocks) if whole.blocks else None
        places = array("I", [base + place - 1 for place in whole.places])
        places.extend([self._empty()] * (file.windows - len(places)))
        self._shards.write(file.index_word, places)
        self.rows += len(whole.blocks) - len(whole.places)
        return True

    def _build_window(self, key: Hashable, cfi: CfiFile, window: int) -> None:
        file = self._files[key]
        block = cfi.window(file.first + window)
        if block[0] == 1 and not block[1]:
            address = self._empty()
        else:
            address = self._shards.take(len(block))
            self._write_rules(key, cfi, _WINDOWED_RULES)
            self._shards.write(address, block)
            self.rows += block[0]
        self._shards.write_word(file.index_word + window, address)

    def _empty(self) -> int:
        """The block of a window without rules, one for all."""
        if not self._no_rules:
            self._no_rules = self._shards.take(2)
            self._shards.write(self._no_rules, array("I", (1, NO_RULE)))
        return self._no_rules

    def _write_rules(self, key: Hashable, cfi: CfiFile, room: int) -> None:
        """Write the rules that are new; those above the room are left to user space."""
        rules = self._rules.get(key)
        is_new = rules is None
        if rules is None:
            if self._rules_left < room:
                raise NoRoomError
            base = self._rules_end()
            self._rules_left -= room
            rules = self._rules[key] = _Rules(base, room)
        for number in range(rules.written, min(rules.room, len(cfi.table.rules))):
            at = (rules.base + number) * _RULE_BYTES
            packed = pack_rule(cfi.table.rules[number], X86_64, is_none=number == NO_RULE)
            self._memory.view[at : at + _RULE_BYTES] = packed
            rules.written = number + 1
        if is_new:  # no window points at a rule yet, so nothing is read half written
            self._put_file(self._files[key], rules.base, rules.room)

    def _rules_end(self) -> int:
        return self._memory.size // _RULE_BYTES - self._rules_left

    def close(self) -> None:
        """Unmap the tables; programs keep theirs. Again is harmless."""
        self._shards.close()
        self._memory.close()


def _put(table: RecordMap, key: int, value: bytes) -> None:
    bpf.map_update_elem(table.fileno(), key.to_bytes(4, "little"), value)
