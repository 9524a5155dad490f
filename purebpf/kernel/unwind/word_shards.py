"""`WordShards`: memory that programs read and this process writes, in words of 32 bits.

Needs arrays that can be mapped (Linux 5.5), 1 MiB each, in an array of maps: `shards` of
bpf_src/include/unwind_tables.h. A word address is shard << 18 | word. Each piece lies in one shard.
"""

from __future__ import annotations

import time
from array import array
from collections import defaultdict, deque

from purebpf.abi.bpf import BPF_F_MMAPABLE, bpf_map_type
from purebpf.closable import Closing
from purebpf.kernel.rings.record_types import RecordMap
from purebpf.syscall import bpf
from purebpf.syscall.memory import Memory

__all__ = ["SHARD_WORDS", "NoRoomError", "WordShards"]

_SHARD_BITS = 18
SHARD_WORDS = 1 << _SHARD_BITS
_ALIGNED = 8
"""Words that each piece begins at a multiple of: a mapping has as many."""
_GRACE_S = 1.0
"""How long after it was given back a piece stays as it is: a program may still read it."""


class NoRoomError(Exception):
    """Every shard is full."""


class WordShards(Closing):
    """Hands out pieces of the shards, which it creates as they are needed.

    Args:
        outer: the array of maps.

    Raises:
        KernelError: from `take`: a shard cannot be created or mapped.
    """

    def __init__(self, outer: RecordMap) -> None:
        self._outer = outer
        self._memories: list[Memory] = []
        self._words: list[memoryview] = []
        self._used = SHARD_WORDS
        self._free: defaultdict[int, deque[tuple[float, int]]] = defaultdict(deque)

    @property
    def nbytes(self) -> int:
        """Memory of all shards."""
        return sum(memory.size for memory in self._memories)

    def take(self, count: int) -> int:
        """The address of a piece of `count` words, which are 0.

        Raises:
            NoRoomError: there is none, or it is larger than a shard.
        """
        if count > SHARD_WORDS:
            raise NoRoomError
        if self._used + count > SHARD_WORDS:
            self._add()
        address = len(self._words) - 1 << _SHARD_BITS | self._used
        self._used += -(-count // _ALIGNED) * _ALIGNED
        return address

    def take_reusable(self, count: int) -> int:
        """A piece that can be given back; what is in it may be anything.

        Raises:
            NoRoomError: as `take`.
        """
        size = _rounded(count)
        free = self._free[size]
        if free and free[0][0] < time.monotonic():
            return free.popleft()[1]
        return self.take(size)

    def give_back(self, address: int, count: int) -> None:
        """A piece of `take_reusable` is not pointed at any more. Used again after a second."""
        self._free[_rounded(count)].append((time.monotonic() + _GRACE_S, address))

    def write(self, address: int, words: array[int]) -> None:
        """Fill a piece, or the beginning of one."""
        at = address & SHARD_WORDS - 1
        self._words[address >> _SHARD_BITS][at : at + len(words)] = memoryview(words)

    def write_word(self, address: int, word: int) -> None:
        """Store one word whole, after everything that was written before (x86 keeps the order)."""
        self._words[address >> _SHARD_BITS][address & SHARD_WORDS - 1] = word

    def read_word(self, address: int) -> int:
        """The word at an address."""
        return int(self._words[address >> _SHARD_BITS][address & SHARD_WORDS - 1])

    def _add(self) -> None:
        number = len(self._words)
        if number >= self._outer.max_entries:
            raise NoRoomError
        size = 4 * SHARD_WORDS
        kind = bpf_map_type.BPF_MAP_TYPE_ARRAY
        with bpf.map_create(kind, 4, size, 1, map_flags=BPF_F_MMAPABLE) as shard:
            memory = Memory(shard.fileno(), size, writable=True)
            try:
                key, value = number.to_bytes(4, "little"), shard.fileno().to_bytes(4, "little")
                bpf.map_update_elem(self._outer.fileno(), key, value)
            except BaseException:
                memory.close()
                raise
        self._memories.append(memory)
        self._words.append(memory.view.cast("I"))
        self._used = 0 if number else _ALIGNED  # address 0 means that there is nothing

    def close(self) -> None:
        """Unmap the shards; programs keep theirs. Again is harmless."""
        while self._words:
            self._words.pop().release()
            self._memories.pop().close()


def _rounded(count: int) -> int:
    return max(_ALIGNED, 1 << (count - 1).bit_length())
