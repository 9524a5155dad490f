"""The C library's place for the pointer to a thread's state.

CPython stores it with pthread_setspecific(3), under a separate key. purebpf finds the slot by its
content, in threads with a readable state, so it needs no layout of a C library. In glibc the first
32 keys are in struct pthread itself; in musl it has a pointer to all of them. CPython 3.15 has
thread-local variables instead of a key: they lie before that struct, on arm64 behind it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from purebpf.runtimes.cpython.threads import ThreadState
from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.tuples import NamedTuple

__all__ = ["ThreadSlot", "find_slot"]

_NEAR = 0x900
"""Bytes of struct pthread that are searched: glibc has the keys at 0x310."""
_STATIC = 0x400
"""Bytes around it that are searched: thread-local variables of what was loaded at the start."""
_POINTERS = 0x200
_KEYS = 0x400
_ALIGNED = 8


class ThreadSlot(NamedTuple):
    """The slot is at pthread_self() + `offset`; with `inner`, at the pointer stored there +
    `inner`.

    The thread pointer of the kernel is at pthread_self() + `distance`.
    """

    offset: int
    inner: int = -1
    distance: int = 0


def find_slot(memory: Memory, threads: Sequence[ThreadState]) -> ThreadSlot | None:
    """Return the slot that has the state of each of the threads; None: there is none."""
    if not threads:
        return None
    first = threads[0]
    # musl has the keys right behind the struct of each thread but the main one: such a slot looks
    # direct, and is not one of all threads. _Py_tss_gilstate of 3.15 lies before _Py_tss_tstate,
    # which is null without the GIL.
    for search in (_behind_struct, _in_struct, _indirect, _before, _after):
        for slot in search(memory, first):
            if all(_holds(memory, slot, thread) for thread in threads):
                return slot
    return None


def _behind_struct(memory: Memory, thread: ThreadState) -> list[ThreadSlot]:
    """Slots near the thread that it has a pointer to.

    Those to itself say nothing: to the struct, and of lists that are empty.
    """
    near = {slot.offset for slot in _in_struct(memory, thread)}
    slots = []
    for slot in _indirect(memory, thread) if near else ():
        start = memory.number(thread.pthread + slot.offset) - thread.pthread
        if start not in (0, slot.offset) and start + slot.inner in near:
            slots.append(slot)
    return slots


def _in_struct(memory: Memory, thread: ThreadState) -> list[ThreadSlot]:
    return _direct(memory, thread, 0, _NEAR)


def _before(memory: Memory, thread: ThreadState) -> list[ThreadSlot]:
    return _direct(memory, thread, -_STATIC, _STATIC)


def _after(memory: Memory, thread: ThreadState) -> list[ThreadSlot]:
    return _direct(memory, thread, _NEAR, _STATIC)


def _direct(memory: Memory, thread: ThreadState, start: int, size: int) -> list[ThreadSlot]:
    offsets = _find(memory, thread.pthread + start, size, thread.address)
    return [ThreadSlot(start + at) for at in offsets]


def _indirect(memory: Memory, thread: ThreadState) -> list[ThreadSlot]:
    slots = []
    for offset in range(0, _POINTERS, _ALIGNED):
        try:
            pointer = memory.number(thread.pthread + offset)
        except UnreadableError:
            continue
        inner = _find(memory, pointer, _KEYS, thread.address) if pointer % _ALIGNED == 0 else []
        slots += [ThreadSlot(offset, at) for at in inner]
    return slots


def _find(memory: Memory, start: int, size: int, value: int) -> list[int]:
    """Return the place of a word."""
    try:
        raw = memory.bytes(start, size)
    except UnreadableError:
        return []
    return [8 * at for at, (word,) in enumerate(struct.iter_unpack("<Q", raw)) if word == value]


def _holds(memory: Memory, slot: ThreadSlot, thread: ThreadState) -> bool:
    try:
        at = thread.pthread + slot.offset
        if slot.inner >= 0:
            at = memory.number(at) + slot.inner
        return memory.number(at) == thread.address
    except UnreadableError:
        return False
