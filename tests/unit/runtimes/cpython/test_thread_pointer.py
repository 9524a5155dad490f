"""The thread pointer of arm64 is found behind the struct of a thread, by what it points at."""

from __future__ import annotations

import struct

import pytest

from purebpf.runtimes.cpython.thread_pointer import pointer_distance
from purebpf.runtimes.cpython.threads import ThreadState
from purebpf.runtimes.memory import Memory

_STRUCTS = 0x10000, 0x30000, 0x50000
_SPAN = 0x2000
_GLIBC, _MUSL = 0x740, 0xC8 + 8  # of musl 16 bytes are free behind a struct of an odd size
_UNALLOCATED = (1 << 64) - 1


class _Process:
    """Threads, each with a struct and a vector of blocks."""

    def __init__(self) -> None:
        self._parts = {
            at: bytearray(_SPAN) for at in (*_STRUCTS, *(at + 0x8000 for at in _STRUCTS))
        }

    def put(self, address: int, *words: int) -> None:
        start = max(at for at in self._parts if at <= address)
        struct.pack_into(f"<{len(words)}Q", self._parts[start], address - start, *words)

    def read(self, address: int, size: int) -> bytes:
        for start, part in self._parts.items():
            if start <= address < start + _SPAN:
                return bytes(part[address - start :][:size])
        return b""

    def distance(self, *structs: int) -> int | None:
        return pointer_distance(
            Memory(self.read), [ThreadState(0x1000, pthread, 0) for pthread in structs]
        )


def _glibc() -> _Process:
    process = _Process()
    for pthread in _STRUCTS:
        pointer, vector = pthread + _GLIBC, pthread + 0x8100
        process.put(pointer, vector)
        # of 15 blocks the first is a library's that was loaded later, the second is libc's
        process.put(vector - 16, 15, 0, 1, 0, _UNALLOCATED, 0, pointer + 0x10, 0)
        process.put(pthread + 0x100, pthread + 0x100, pthread + 0x100)  # a list of itself
        process.put(pthread + 0x310, 7, 0x7F0000001000)  # keys: a sequence, and what was set
        process.put(pthread + 0x510, pthread + 0x310)
    return process


def _musl() -> _Process:
    process = _Process()
    for pthread in _STRUCTS:
        pointer, vector = pthread + _MUSL, pthread + 0x8100
        process.put(pthread, pthread)
        process.put(pointer - 8, vector)
        process.put(vector, 1, pointer + 0x10)
    return process


@pytest.mark.parametrize(("process", "distance"), [(_glibc(), _GLIBC), (_musl(), _MUSL)])
def test_it_is_where_the_vector_of_blocks_is(process: _Process, distance: int) -> None:
    assert process.distance(_STRUCTS[0]) == distance
    assert process.distance(*_STRUCTS) == distance


def test_a_key_with_the_address_of_a_variable_is_not_taken_for_it() -> None:
    process = _glibc()
    for pthread in _STRUCTS:
        variable = pthread + _GLIBC + 0x40
        process.put(pthread + 0x310, 1, variable, 1, variable, 1, variable)
    assert process.distance(*_STRUCTS) == _GLIBC


def test_variables_that_point_to_tables_are_not_taken_for_it() -> None:
    """As of the allocator: the main thread's variables and its heap lie side by side."""
    process = _glibc()
    for pthread in _STRUCTS:
        heap = pthread + 0x1800
        process.put(pthread + _GLIBC + 0x40, heap)
        process.put(heap - 16, 0, 0x291, 0, 0, heap + 0x100, heap + 0x200)
        process.put(pthread + 0x200, heap)
    assert process.distance(*_STRUCTS) == _GLIBC


def test_all_threads_agree() -> None:
    process = _glibc()
    process.put(_STRUCTS[1] + _GLIBC, 0)
    assert process.distance(_STRUCTS[0], _STRUCTS[2]) == _GLIBC
    assert process.distance(*_STRUCTS) is None


def test_memory_that_holds_anything_gives_none() -> None:
    assert _Process().distance(*_STRUCTS) is None
    assert _Process().distance() is None
    assert _Process().distance(0x4000_0000) is None
    process = _glibc()
    for pthread in _STRUCTS:
        process.put(pthread + 0x80F0, 1 << 63)  # so many blocks
        process.put(pthread + 0x8100, *[0] * 64)
    assert process.distance(*_STRUCTS) is None
