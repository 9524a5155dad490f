"""`WordShards`: memory that programs read and this process writes, in words of 32 bits.

Needs arrays that can be mapped (Linux 5.5), 1 MiB each, in an array of maps: `shards` of
bpf_src/include/unwind_tables.h. A word address is shard << 18 | word; 0 is none. Each piece lies in
one shard.
"""

from __future__ import annotations

import errno
import os
from array import array
from typing import NoReturn, SupportsIndex

from purebpf.abi.bpf import BPF_F_MMAPABLE, bpf_map_type
from purebpf.closable import Closing, refuse_copy
from purebpf.errors import KernelError
from purebpf.loader.rings.record_types import RecordMap
from purebpf.observe.unwind.pieces import Pieces
from purebpf.spec import MapSpec
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor
from purebpf.syscall.membarrier import order_memory
from purebpf.syscall.memory import Memory
from purebpf.tuples import NamedTuple

__all__ = ["SHARD_WORDS", "NoRoomError", "WordShards"]

_SHARD_BITS = 18
SHARD_WORDS = 1 << _SHARD_BITS
_ALIGNED = 8
"""Words that each piece begins at a multiple of: a mapping has as many."""


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
        self._is_ordered = os.uname().machine == "x86_64"
        self._shards: dict[int, _Shard] = {}  # by number, ascending
        self._leaving: list[_Shard] = []  # out of the map, and perhaps still read

    @property
    def nbytes(self) -> int:
        """Memory of all shards."""
        return sum(shard.memory.size for shard in self._shards.values())

    @property
    def kept(self) -> float:
        """The share of all possible words that are in use."""
        taken = sum(shard.pieces.kept for shard in self._shards.values())
        return taken / (SHARD_WORDS * self._outer.max_entries)

    def take(self, count: int) -> int:
        """Return the address of a piece of `count` words, with arbitrary content.

        Raises:
            NoRoomError: there is none, or it is larger than a shard.
        """
        if count > SHARD_WORDS - _ALIGNED:
            raise NoRoomError
        for shard in self._shards.values():
            address = shard.pieces.take(count)
            if address is not None:
                return address
        address = self._add().take(count)
        assert address is not None
        return address

    def give_back(self, address: int, count: int) -> None:
        """Nothing points at a piece any more. It is used again after a second."""
        self._shards[address >> _SHARD_BITS].pieces.give_back(address, count)

    def write(self, address: int, words: array[int]) -> None:
        """Fill a piece, or the beginning of one."""
        at = address & SHARD_WORDS - 1
        self._shards[address >> _SHARD_BITS].words[at : at + len(words)] = memoryview(words)

    def write_word(self, address: int, word: int) -> None:
        """Store one word whole, after everything that was written before."""
        self.order_stores()
        self._shards[address >> _SHARD_BITS].words[address & SHARD_WORDS - 1] = word

    def order_stores(self) -> None:
        """Make later stores visible after earlier ones: x86 keeps the order.

        The reading programs get from one word to the next by its value, and loads that depend on
        each other this way are in order everywhere (Linux, Documentation/memory-barriers.txt).
        """
        if not self._is_ordered:
            order_memory()

    def read(self, address: int, count: int) -> array[int]:
        """Return the content of a piece, or its beginning."""
        at = address & SHARD_WORDS - 1
        return array("I", bytes(self._shards[address >> _SHARD_BITS].words[at : at + count]))

    def read_word(self, address: int) -> int:
        """The word at an address."""
        return int(self._shards[address >> _SHARD_BITS].words[address & SHARD_WORDS - 1])

    def _add(self) -> Pieces:
        numbers = range(self._outer.max_entries)
        number = next((number for number in numbers if number not in self._shards), None)
        if number is None:
            raise NoRoomError
        size = 4 * SHARD_WORDS
        with self._create(size) as shard:
            memory = Memory(shard.fileno(), size, writable=True)
            try:
                key, value = number.to_bytes(4, "little"), shard.fileno().to_bytes(4, "little")
                bpf.map_update_elem(self._outer.fileno(), key, value)
            except BaseException:
                memory.close()
                raise
        first = number << _SHARD_BITS
        pieces = Pieces(first + _ALIGNED, first + SHARD_WORDS, _ALIGNED)
        self._shards[number] = _Shard(memory, memory.view.cast("I"), pieces)
        self._shards = dict(sorted(self._shards.items()))
        return pieces

    def _create(self, size: int) -> Descriptor:
        """A map of so many bytes. Without memory for a further one, there is no more room."""
        kind = bpf_map_type.BPF_MAP_TYPE_ARRAY
        try:
            return bpf.map_create(kind, 4, size, 1, map_flags=BPF_F_MMAPABLE)
        except KernelError as error:
            if error.errno == errno.ENOMEM and self._shards:
                raise NoRoomError from None
            spec = MapSpec("unwind rules", kind, 4, size, 1, BPF_F_MMAPABLE)
            from purebpf.loader.maps.map_errors import creation  # only then

            raise creation(error, spec) from None

    def shrink(self) -> None:
        """Take out the shards that nothing is in; one stays, as there will be others.

        The call after that frees their memory, when no program can be in it any more: before commit
        876673364161 ("bpf: Defer the free of inner map when necessary"), the kernel did not wait
        for programs inside.
        """
        for shard in self._leaving:
            shard.close()
        self._leaving.clear()
        for number, shard in list(self._shards.items()):
            if len(self._shards) == 1 or not shard.pieces.is_empty:
                continue
            bpf.map_delete_elem(self._outer.fileno(), number.to_bytes(4, "little"))
            self._leaving.append(self._shards.pop(number))

    def close(self) -> None:
        """Unmap the shards; programs keep theirs. Again is harmless."""
        while self._leaving:
            self._leaving.pop().close()
        while self._shards:
            self._shards.popitem()[1].close()


class _Shard(NamedTuple):
    """A map of words."""

    memory: Memory
    words: memoryview
    pieces: Pieces

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        refuse_copy(self, protocol)

    def close(self) -> None:
        """Unmap it."""
        self.words.release()
        self.memory.close()
