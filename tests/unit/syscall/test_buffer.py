"""Addresses are where the bytes are."""

from __future__ import annotations

import ctypes

import pytest

from purebpf.syscall.buffer import Buffer
from purebpf.syscall.command import address_of


@pytest.mark.parametrize("data", [b"\0middle\0", bytearray(b"\0middle\0")], ids=["bytes", "array"])
def test_the_address_is_that_of_the_bytes_themselves(data):
    assert ctypes.string_at(address_of(data), len(data)) == b"\0middle\0"


def test_what_is_written_to_the_address_of_a_bytearray_is_in_it():
    data = bytearray(4)
    ctypes.memmove(address_of(data), b"abcd", 4)
    assert data == b"abcd"


@pytest.mark.parametrize("nothing", [None, b"", bytearray()], ids=repr)
def test_nothing_has_the_address_null(nothing):
    assert address_of(nothing) == 0


def test_a_buffer_stays_where_it_is():
    buffer = Buffer(b"abcd")
    with pytest.raises(BufferError):
        buffer.data.extend(bytes(1 << 16))
    buffer.data[:] = b"wxyz"
    assert ctypes.string_at(buffer.address, 4) == b"wxyz"
    assert bytes(buffer.array) == b"wxyz"


def test_a_buffer_starts_zeroed():
    assert Buffer(5).data == bytes(5)
