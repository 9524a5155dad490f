"""Where the word with the mark of 32-bit calls is, by the types of a kernel."""

from __future__ import annotations

import pytest

from purebpf.btf.types.parse import Btf
from purebpf.tools.summary import thread_info_abi
from tests.support.builders.btf_builder import BtfBuilder


def kernel(*words: str, before: bool) -> Btf:
    """Types of a kernel with these words in thread_info, behind a pointer or not."""
    builder = BtfBuilder()
    long = builder.int("unsigned long", 8)
    half = builder.int("unsigned int", 4)
    types = [half if name == "status" else long for name in words]
    info = builder.struct("thread_info", [*zip(words, types, strict=True)])
    first = [("stack", long)] if before else []
    builder.struct("task_struct", [*first, ("thread_info", info)])
    return builder.btf()


@pytest.mark.parametrize(
    ("types", "offset"),
    [
        (kernel("flags", "syscall_work", "status", before=False), 16),
        (kernel("flags", "syscall_work", "status", before=True), 24),
        (kernel("flags", before=False), 0),
        (kernel("preempt_count", before=False), thread_info_abi.UNKNOWN),
        (BtfBuilder().btf(), thread_info_abi.UNKNOWN),
    ],
)
def test_the_word_is_found_by_its_name(types: Btf, offset: int) -> None:
    assert thread_info_abi.word_offset(types) == offset
