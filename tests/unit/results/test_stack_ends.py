"""How the ends of user stacks are shown and counted."""

from __future__ import annotations

import pytest

from purebpf.results.build import stack_ends
from purebpf.unwind.machine import AARCH64, X86_64
from purebpf.unwind.perf_registers import is_compat
from purebpf.unwind.reason import Reason


@pytest.mark.parametrize("reason", list(Reason))
def test_only_whole_stacks_have_no_mark_at_their_root(reason: Reason) -> None:
    marks = stack_ends.end_of(int(reason))
    assert bool(marks) != reason.is_whole
    assert all(mark.name.startswith("[") and mark.kind == "user" for mark in marks)


def test_what_is_cut_is_a_loss_with_its_reasons_the_most_frequent_first() -> None:
    ends = {Reason.COMPLETE: 90, Reason.READ_FAULT: 3, Reason.COPY_SHORT: 7}
    name, lost, what = stack_ends.cause(ends)
    assert (name, lost) == ("stacks_cut", 10)
    assert what == (
        "10 user stacks end early (copy_short=7, read_fault=3): the copied part of the stack was "
        "too small: record larger copies"
    )
    assert stack_ends.cause({Reason.FINISHED: 4}).lost == 0


def test_one_line_about_the_stacks() -> None:
    facts = stack_ends.summarize({Reason.COMPLETE: 989, Reason.COPY_SHORT: 11}, 5)
    assert facts == {"whole": 989, "guessed": 5, "cut": {"copy_short": 11}}
    line = "user stacks: 98.9% whole, 0.5% with guessed frames, 1.1% cut"
    assert stack_ends.describe(facts) == line
    assert stack_ends.describe(stack_ends.summarize({}, 0)) == ""


def test_code_segments_tell_32_bit_programs_apart() -> None:
    mask = 1 << 8 | 1 << 10  # ip, cs
    assert is_compat(X86_64, mask, (0x8048000, 0x23))
    assert not is_compat(X86_64, mask, (0x401000, 0x33))
    assert not is_compat(X86_64, 1 << 8, (0x8048000,))
    assert not is_compat(X86_64, mask, ())
    assert not is_compat(AARCH64, mask, (0x8048000, 0x23))
