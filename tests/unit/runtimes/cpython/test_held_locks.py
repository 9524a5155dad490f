"""The locks that a thread has, by the words of its frames."""

from __future__ import annotations

import struct

import pytest

from purebpf.runtimes.cpython.held_locks import HeldLock, held_locks
from purebpf.runtimes.cpython.layouts import LAYOUTS
from purebpf.runtimes.cpython.threads import ThreadState
from purebpf.runtimes.memory import Memory

BASE, SIZE = 0x10000, 1 << 16
THREAD, CFRAME, FRAME, CODE, METHOD, LOCK = range(BASE, BASE + 6 * 0x1000, 0x1000)
METHOD_TYPE, LOCK_TYPE, DEFINITION, TEXTS = range(BASE + 0x8000, BASE + 0xC000, 0x1000)
FUTEX, PTHREAD = 0x7F0000000010, 0x7F0000001000
LOCALS, STACK_SIZE = 2, 3


class Process:
    """A thread with one frame of five words."""

    def __init__(self, version: tuple[int, int], stack_top: int) -> None:
        self.content = bytearray(SIZE)
        layout = self.layout = LAYOUTS[version]
        self.put(THREAD + layout.frame, CFRAME)
        self.put(CFRAME + layout.current, FRAME)
        self.put(FRAME + layout.frame_code, CODE)
        first_line = CODE + layout.code_first_line - BASE
        struct.pack_into("<iii", self.content, first_line - 4, STACK_SIZE, 33, LOCALS)
        struct.pack_into("<i", self.content, FRAME + 64 - BASE, stack_top)
        for address, kind, name in (
            (METHOD, METHOD_TYPE, b"builtin_function_or_method\0"),
            (LOCK, LOCK_TYPE, b"_thread.lock\0"),
        ):
            text = TEXTS + (kind & 0x3000) // 0x10
            self.put(address + 8, kind)
            self.put(kind + layout.type_name, text)
            self.content[text - BASE : text - BASE + len(name)] = name
        self.put(METHOD + 16, DEFINITION, LOCK)
        self.put(DEFINITION, TEXTS + 0x800)
        self.content[TEXTS + 0x800 - BASE : TEXTS + 0x809 - BASE] = b"__exit__\0"
        self.put(LOCK + 16, FUTEX, 0, 1)

    def read(self, address: int, size: int) -> bytes:
        at = address - BASE
        return bytes(self.content[at : at + size]) if 0 <= at < SIZE else b""

    def put(self, address: int, *words: int) -> None:
        struct.pack_into(f"<{len(words)}Q", self.content, address - BASE, *words)


def found(version: tuple[int, int], word: int, stack_top: int = -1) -> list[HeldLock]:
    """The locks of a frame that has the method of a locked lock in one of its words."""
    process = Process(version, stack_top)
    process.put(FRAME + 72 + 8 * word, METHOD)
    thread = ThreadState(address=THREAD, pthread=PTHREAD, native_id=7)
    return list(held_locks(version, process.layout, Memory(process.read), [thread]))


@pytest.mark.parametrize("version", [(3, 11), (3, 12)])
@pytest.mark.parametrize("word", [LOCALS, LOCALS + STACK_SIZE - 1])
def test_a_lock_in_the_words_of_a_frame_is_held(version: tuple[int, int], word: int) -> None:
    assert found(version, word) == [HeldLock(FUTEX, PTHREAD, 0)]


@pytest.mark.parametrize("version", [(3, 11), (3, 12)])
def test_what_a_call_left_behind_the_frame_is_not_held(version: tuple[int, int]) -> None:
    assert found(version, LOCALS + STACK_SIZE) == []
    assert found(version, LOCALS + 1, stack_top=LOCALS + 1) == []
    assert found(version, LOCALS, stack_top=LOCALS + 1) == [HeldLock(FUTEX, PTHREAD, 0)]


def test_other_versions_have_another_form() -> None:
    assert found((3, 13), LOCALS) == []
