"""The distance of a thread's pointer from the result of pthread_self().

A thread's state has the latter, the kernel has the former. On x86_64 they are equal. On arm64 the
thread pointer is behind struct pthread, whose size depends on the C library. purebpf recognises it
by its target: the vector of the blocks that hold the thread's variables.

Sources: ELF Handling for Thread-Local Storage (Drepper), variants 1 and 2; glibc,
sysdeps/aarch64/nptl/tls.h; musl, src/internal/pthread_impl.h.
"""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.runtimes.cpython.threads import ThreadState
from purebpf.runtimes.memory import Memory, UnreadableError

__all__ = ["pointer_distance"]

_LARGEST = 0x1000
"""Of a struct pthread: glibc's has 0x740 bytes, musl's 0xC8."""
_ALIGNED = 16
_WORD = 8
_MOST_BLOCKS = 64
_MOST_NUMBER = 1 << 20
_STATIC = 1 << 16
"""Bytes behind the thread pointer that hold the variables of what was loaded at the start."""
_SURPLUS = 14
"""More blocks than there are, for which glibc makes room (DTV_SURPLUS)."""
_NOT_MADE = 0, (1 << 64) - 1


def pointer_distance(memory: Memory, threads: Sequence[ThreadState]) -> int | None:
    """The bytes from pthread_self() up to the thread pointer, in a process of arm64.

    Args:
        memory: of the process.
        threads: some that live; all must agree.

    Returns:
        None if it does not show.
    """
    shared = {distance for thread in threads[:1] for distance in _distances(memory, thread.pthread)}
    for thread in threads[1:]:
        shared &= {*_distances(memory, thread.pthread)}
    return min(shared, default=None)  # variables may hold anything, and are behind the pointer


def _distances(memory: Memory, pthread: int) -> list[int]:
    distances = []
    try:
        is_musl = memory.number(pthread) == pthread
        for distance in range(_ALIGNED, _LARGEST, _ALIGNED):
            pointer = pthread + distance
            if is_musl:
                is_met = _is_of_musl(memory, memory.number(pointer - _WORD), pointer)
            else:
                is_met = _is_of_glibc(memory, memory.number(pointer), pointer)
            if is_met:
                distances.append(distance)
    except UnreadableError:  # the end of the thread's stack
        pass
    return distances


def _is_of_glibc(memory: Memory, vector: int, pointer: int) -> bool:
    """Return True if there are two words for each block: its place, and the pointer to free with
    it.

    In front of them are their number and a generation, two words each as well. A library loaded at
    the start, as the C library, has its block behind the thread pointer, and nothing to free.
    """
    has_own = False
    try:
        blocks = memory.number(vector - 2 * _WORD)
        if not _SURPLUS < blocks < _MOST_NUMBER or memory.number(vector) >= _MOST_NUMBER:
            return False
        for block in range(1, 1 + min(blocks, _MOST_BLOCKS)):
            start = memory.number(vector + 2 * block * _WORD)
            free = memory.number(vector + (2 * block + 1) * _WORD)
            if start in _NOT_MADE:
                continue
            if start < _STATIC or free > start:
                return False
            has_own = has_own or (not free and 0 < start - pointer < _STATIC)
    except UnreadableError:
        return False
    return has_own


def _is_of_musl(memory: Memory, vector: int, pointer: int) -> bool:
    """Return True if there is a word for each block, behind their number."""
    try:
        blocks = memory.number(vector)
        return 0 < blocks < _MOST_NUMBER and 0 < memory.number(vector + _WORD) - pointer < _STATIC
    except UnreadableError:
        return False
