"""The slot of the thread state is found in glibc's and in musl's layout of threads."""

from __future__ import annotations

import struct

from purebpf.runtimes.cpython.thread_slot import ThreadSlot, find_slot
from purebpf.runtimes.cpython.threads import ThreadState
from purebpf.runtimes.memory import Memory

_MAIN, _SECOND, _THIRD = 0x10000, 0x20000, 0x30000
_MAIN_KEYS = 0x90000  # musl has those of the main thread in the C library
_POINTER, _KEY = 0x80, 8  # of musl 1.2.3, and CPython's own key
_MUSL_STRUCT = 0xC8  # the keys of other threads follow it
_GLIBC_KEYS = 0x310


class _Threads:
    """The memory of a process with a page for each thread: zero where nothing was written."""

    def __init__(self) -> None:
        self._pages = {at: bytearray(0x1000) for at in (_MAIN, _SECOND, _THIRD, _MAIN_KEYS)}

    def write(self, address: int, word: int) -> None:
        struct.pack_into("<Q", self._pages[address & ~0xFFF], address & 0xFFF, word)

    def read(self, address: int, size: int) -> bytes:
        page = self._pages.get(address & ~0xFFF, b"")
        return bytes(page[address & 0xFFF :][:size])

    def find(self, *pthreads: int) -> ThreadSlot | None:
        return find_slot(Memory(self.read), [_state(pthread) for pthread in pthreads])


def _state(pthread: int) -> ThreadState:
    fields = dict.fromkeys(ThreadState._fields, 0)
    return ThreadState(**{**fields, "address": _address(pthread), "pthread": pthread})


def _address(pthread: int) -> int:
    return 0x7F00_0000_0000 + pthread


def _musl() -> _Threads:
    threads = _Threads()
    for pthread in (_MAIN, _SECOND, _THIRD):
        keys = _MAIN_KEYS if pthread == _MAIN else pthread + _MUSL_STRUCT
        threads.write(pthread, pthread)  # the struct's pointer to itself
        threads.write(pthread + _POINTER, keys)
        threads.write(keys + _KEY, _address(pthread))
    return threads


def _glibc() -> _Threads:
    threads = _Threads()
    for pthread in (_MAIN, _SECOND, _THIRD):
        threads.write(pthread, pthread)
        threads.write(pthread + _GLIBC_KEYS + 8, _address(pthread))
    return threads


def test_glibc_has_it_in_the_thread() -> None:
    assert _glibc().find(_MAIN) == ThreadSlot(_GLIBC_KEYS + 8)
    assert _glibc().find(_THIRD, _SECOND, _MAIN) == ThreadSlot(_GLIBC_KEYS + 8)


def test_musl_has_a_pointer_to_it() -> None:
    assert _musl().find(_MAIN) == ThreadSlot(_POINTER, _KEY)


def test_a_slot_that_only_some_threads_have_is_not_taken() -> None:
    """Musl's keys lie right behind the struct of each thread but the main one."""
    assert _musl().find(_SECOND, _MAIN) == ThreadSlot(_POINTER, _KEY)
    assert _musl().find(_THIRD, _SECOND, _MAIN) == ThreadSlot(_POINTER, _KEY)


def test_one_thread_is_enough_where_it_points_to_its_keys() -> None:
    """A program that runs Python in one thread, and not in the main one."""
    assert _musl().find(_SECOND) == ThreadSlot(_POINTER, _KEY)
    assert _glibc().find(_SECOND) == ThreadSlot(_GLIBC_KEYS + 8)


def test_a_thread_without_a_slot_has_none() -> None:
    assert _Threads().find(_MAIN) is None


def test_an_empty_list_of_the_thread_says_nothing() -> None:
    """On arm64 that of robust mutexes comes before glibc's keys, within reach of its pointer."""
    threads = _glibc()
    for pthread in (_MAIN, _SECOND, _THIRD):
        threads.write(pthread + 0xD8, pthread + 0xD8)
        threads.write(pthread + 0x110, _address(pthread))
        threads.write(pthread + _GLIBC_KEYS + 8, 0)
    assert threads.find(_MAIN) == ThreadSlot(0x110)
