"""What is said of copied stacks of a file that end early."""

from __future__ import annotations

from purebpf.results.build import stack_ends
from purebpf.unwind.machine import AARCH64, X86_64
from purebpf.unwind.perf_registers import is_compat
from purebpf.unwind.reason import Reason


def test_what_is_cut_is_a_loss_with_its_reasons_the_most_frequent_first() -> None:
    ends = {Reason.COMPLETE: 90, Reason.READ_FAULT: 3, Reason.COPY_SHORT: 7}
    name, lost, what, *_ = stack_ends.cause(ends)
    assert (name, lost) == ("stacks_cut", 10)
    assert what == (
        "10 user stacks end early (copy_short=7, read_fault=3): the copied part of the stack was "
        "too small: record larger copies"
    )
    assert stack_ends.cause({Reason.FP_GUESS: 4}).lost == 0


def test_code_segments_tell_32_bit_programs_apart() -> None:
    mask = 1 << 8 | 1 << 10  # ip, cs
    assert is_compat(X86_64, mask, (0x8048000, 0x23))
    assert not is_compat(X86_64, mask, (0x401000, 0x33))
    assert not is_compat(X86_64, 1 << 8, (0x8048000,))
    assert not is_compat(X86_64, mask, ())
    assert not is_compat(AARCH64, mask, (0x8048000, 0x23))
