"""Stacks of 32-bit tasks."""

from __future__ import annotations

import struct

import pytest

from purebpf.unwind.compat32 import compat_registers, follow_frame_pointers
from purebpf.unwind.machine import I386
from purebpf.unwind.stack_copy import StackCopy

_SP = 0xFFFF0000


def _trace(fp, *words):
    stack = struct.pack(f"<{len(words)}I", *words)
    return follow_frame_pointers(_SP, fp, StackCopy(_SP, stack, 4))


def test_a_chain():
    assert _trace(_SP + 4, 7, _SP + 16, 0x8048111, 7, 0, 0x8048222) == [0x8048111, 0x8048222]


@pytest.mark.parametrize("fp", [0, 4, _SP - 4, _SP + 2, _SP + 400])
def test_what_does_not_look_like_a_frame_pointer(fp):
    assert _trace(fp, _SP + 8, 0x8048111) == []


def test_a_return_address_of_0_and_the_limit_of_frames():
    words = (_SP + 8, 0x8048111, _SP + 16, 0x8048222, _SP + 24, 0)
    assert _trace(_SP, *words) == [0x8048111, 0x8048222]
    many = [word for at in range(300) for word in (_SP + 8 * at + 8, 0x8048111)]
    assert len(_trace(_SP, *many)) == 126


def test_frame_pointers_that_go_back_end_the_trace():
    assert _trace(_SP + 8, 0, 0, _SP, 0x8048111) == [0x8048111]


def test_registers_have_the_numbers_of_i386_and_its_halves():
    """rax, rdx, rcx, rbx, rsi, rdi, rbp and rsp have 0 to 7 on x86-64."""
    values = [number | 7 << 32 for number in range(16)] + [None]
    registers = compat_registers(values)
    assert registers == [0, 2, 1, 3, 7, 6, 4, 5]
    assert (registers[I386.sp], registers[I386.fp]) == (7, 6)
    assert compat_registers([None] * 17) == [None] * 8
