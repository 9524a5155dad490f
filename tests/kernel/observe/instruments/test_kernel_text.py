"""The reader of kernel code, beside the kernel's own dump of a program that it has compiled."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator

import pytest

from purebpf.observe.instruments.kernel_text import KernelText
from purebpf.symbols.kallsyms import function_ranges
from purebpf.syscall import bpf, proc

pytestmark = pytest.mark.needs("bpf")

JITED_LENGTH, JITED_CODE = 16, 24  # of struct bpf_prog_info
INFO_SIZE = 104


@pytest.fixture
def text() -> Iterator[KernelText]:
    with KernelText() as reader:
        yield reader


def _compiled(fd: int) -> tuple[bytes, str]:
    """Return the machine code of a program, and its tag."""
    info = bytearray(INFO_SIZE)
    bpf.obj_get_info_by_fd(fd, info)
    (length,) = struct.unpack_from("=I", info, JITED_LENGTH)
    tag = bytes(info[8:16]).hex()
    code = ctypes.create_string_buffer(length)
    request = bytearray(INFO_SIZE)
    struct.pack_into("=I", request, JITED_LENGTH, length)
    struct.pack_into("=Q", request, JITED_CODE, ctypes.addressof(code))
    bpf.obj_get_info_by_fd(fd, request)
    return code.raw, tag


def test_its_own_code_is_read_as_the_kernel_dumps_it(text: KernelText) -> None:
    program = text._program  # one function: the dump of several has them one behind the other
    code, tag = _compiled(program.fileno())
    places = function_ranges(proc.kallsyms(), f"bpf_prog_{tag}_{program.name}")
    assert len(code) > 50
    assert code in [text.read(start, len(code)) for start, _ in places]


def test_several_chunks_follow_each_other(text: KernelText) -> None:
    ((start, _),) = function_ranges(proc.kallsyms(), "_stext")
    size = (1 << 17) + 1009
    whole = text.read(start, size)
    assert len(whole) == size
    middle = (1 << 16) - 7
    assert text.read(start + middle, 14) == whole[middle : middle + 14]


def test_addresses_without_memory_end_the_code(text: KernelText) -> None:
    assert text.read(0, 4096) == b""
    assert text.read(1 << 63, 16) == b""
    assert text.read(16, 0) == b""
