"""Mappings of ordinary files behave as those of maps."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator

import pytest

from purebpf.errors import KernelError
from purebpf.syscall.memory import Memory

PAGE = mmap.PAGESIZE


@pytest.fixture
def fd() -> Iterator[int]:
    number = os.memfd_create("memory")
    os.truncate(number, 2 * PAGE)
    yield number
    os.close(number)


def test_both_sides_see_what_either_writes(fd):
    with Memory(fd, PAGE, writable=True) as memory:
        memory.view[:4] = b"ours"
        assert os.pread(fd, 4, 0) == b"ours"
        os.pwrite(fd, b"them", 4)
        assert memory.view[4:8] == b"them"


def test_an_offset_is_counted_in_bytes(fd):
    os.pwrite(fd, b"second", PAGE)
    with Memory(fd, PAGE, offset=PAGE) as memory:
        assert bytes(memory.view[:6]) == b"second"


def test_read_only_memory_cannot_be_written(fd):
    with Memory(fd, PAGE) as memory, pytest.raises(TypeError):
        memory.view[:4] = b"ours"


def test_it_outlives_the_descriptor_and_closes_twice(fd):
    other = os.dup(fd)
    memory = Memory(other, PAGE)
    os.close(other)
    assert memory.view[0] == 0
    memory.close()
    memory.close()


def test_a_slice_in_use_holds_the_mapping(fd):
    memory = Memory(fd, PAGE)
    part = memory.view[:8]
    with pytest.raises(BufferError):
        memory.close()
    part.release()
    memory.close()


def test_a_refusal_says_what_was_asked(fd):
    read_only = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    with pytest.raises(KernelError, match=f"{PAGE} bytes at 0: mmap failed with EACCES") as caught:
        Memory(read_only, PAGE, writable=True)
    os.close(read_only)
    assert caught.value.errno == errno.EACCES
