"""Stacks of 32-bit tasks."""

from __future__ import annotations

import struct

import pytest

from purebpf.unwind.compat32 import follow_frame_pointers
from purebpf.unwind.reason import Reason
from purebpf.unwind.unwinder import Unwound

_SP = 0xFFFF0000
_HIGH = 7 << 32
"""Upper halves of registers mean nothing to a 32-bit task."""


def _trace(fp, *words, **options):
    stack = struct.pack(f"<{len(words)}I", *words)
    return follow_frame_pointers(0x8048000, _HIGH | _SP, _HIGH | fp, stack, **options)


def test_a_chain():
    found = _trace(_SP + 4, 7, _SP + 16, 0x8048111, 7, 0, 0x8048222)
    assert found == Unwound([0x8048000, 0x8048111, 0x8048222], Reason.COMPAT32, 2)


@pytest.mark.parametrize("fp", [0, 4, _SP - 4, _SP + 2, _SP + 400])
def test_what_does_not_look_like_a_frame_pointer(fp):
    assert _trace(fp, _SP + 8, 0x8048111) == Unwound([0x8048000], Reason.COMPAT32, 0)


def test_a_return_address_of_0_and_the_limit_of_frames():
    words = (_SP + 8, 0x8048111, _SP + 16, 0x8048222, _SP + 24, 0)
    assert _trace(_SP, *words).frames == [0x8048000, 0x8048111, 0x8048222]
    assert _trace(_SP, *words, max_frames=2) == Unwound([0x8048000, 0x8048111], Reason.COMPAT32, 1)


def test_frame_pointers_that_go_back_end_the_trace():
    assert _trace(_SP + 8, 0, 0, _SP, 0x8048111).frames == [0x8048000, 0x8048111]
