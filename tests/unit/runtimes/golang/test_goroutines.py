"""Goroutines in the memory of a program, laid out as Go 1.19 and Go 1.23 do it."""

from __future__ import annotations

import struct

import pytest

from purebpf.runtimes.golang.goroutines import waiting_goroutines
from purebpf.runtimes.memory import Memory, UnreadableError

LISTED, POINTERS, STRUCTS, STACKS = 0x1000, 0x2000, 0x10000, 0x40000
RUNNING, WAITING, DEAD = 2, 4, 6
SCANNED = 0x1000


class Program:
    """Goroutines with stacks of two callers each."""

    def __init__(self, *states: int, status_at: int = 18, pointer_at: int = 13) -> None:
        self.bytes = bytearray(0x80000)
        self._write(LISTED, POINTERS, len(states))
        for number, state in enumerate(states):
            at, low = STRUCTS + 0x200 * number, STACKS + 0x1000 * number
            self._write(POINTERS + 8 * number, at)
            words = [0] * 24
            words[0], words[1], words[7], words[8], words[9] = low, low + 0x800, low + 64, 0x77, at
            words[pointer_at] = low + 128
            words[status_at], words[status_at + 1] = state, 0 if state == DEAD else 100 + number
            self._write(at, *words)
            self._write(low + 128, low + 256, 0x88)
            self._write(low + 256, 0, 0x99)

    def _write(self, at: int, *words: int) -> None:
        struct.pack_into(f"<{len(words)}Q", self.bytes, at, *words)

    def read(self, address: int, size: int) -> bytes:
        return bytes(self.bytes[address : address + size])

    @property
    def memory(self) -> Memory:
        return Memory(self.read)


@pytest.mark.parametrize(
    "layout",
    [{}, {"status_at": 19}, {"status_at": 18, "pointer_at": 12}, {"status_at": 17}],
    ids=["1.19", "1.23", "1.25", "another"],
)
def test_stacks_of_goroutines_that_wait(layout: dict[str, int]) -> None:
    program = Program(RUNNING, WAITING, DEAD, WAITING | SCANNED, **layout)
    found, weight = waiting_goroutines(program.memory, LISTED, 100)
    assert [one.number for one in found] == [101, 103]
    assert {one.addresses for one in found} == {(0x77, 0x88, 0x99)}
    assert weight == 1.0


def test_some_of_many_stand_for_all() -> None:
    found, weight = waiting_goroutines(Program(*[WAITING] * 20).memory, LISTED, 8)
    assert ([one.number for one in found], weight) == ([100, 103, 106, 109, 112, 115, 118], 3.0)


def test_a_frame_pointer_that_leads_out_of_the_stack_ends_it() -> None:
    program = Program(WAITING)
    struct.pack_into("<Q", program.bytes, STACKS + 128, STACKS + 0x900)
    (found,), _ = waiting_goroutines(program.memory, LISTED, 100)
    assert found.addresses == (0x77, 0x88)


def test_frame_pointers_that_do_not_move_outwards_end_it() -> None:
    program = Program(WAITING)
    struct.pack_into("<Q", program.bytes, STACKS + 128, STACKS + 128)
    (found,), _ = waiting_goroutines(program.memory, LISTED, 100)
    assert found.addresses == (0x77, 0x88)


def damaged(at: int, word: int) -> Program:
    program = Program(WAITING, WAITING)
    struct.pack_into("<Q", program.bytes, at, word)
    return program


@pytest.mark.parametrize(
    "program",
    [
        damaged(LISTED + 8, 1 << 40),
        damaged(LISTED + 8, 0),
        damaged(LISTED, 0x900000),
        damaged(STRUCTS + 0x200 + 8 * 19, 100),
        damaged(STRUCTS + 8 * 13, 5),
    ],
    ids=["too many", "none", "no list", "one number twice", "no frame pointers"],
)
def test_what_is_no_list_of_goroutines(program: Program) -> None:
    with pytest.raises(UnreadableError):
        waiting_goroutines(program.memory, LISTED, 100)
