"""How much of a process's stacks a dump reads and keeps."""

from __future__ import annotations

from purebpf.tools.dump.session import StackSizes

_START, _SIZE = 0x7F00_0000_0000, 64 << 20
_WHOLE = [(_START, _START + _SIZE)]


def test_a_stack_is_read_up_to_its_end() -> None:
    sizes = StackSizes([(0x1000, 0x3000), *_WHOLE])
    assert sizes.of(0x2000) == 0x1000
    assert sizes.of(_START + _SIZE - 24) == 24


def test_no_stack_is_more_than_16_mib() -> None:
    assert StackSizes(_WHOLE).of(_START) == 16 << 20


def test_a_pointer_outside_has_none() -> None:
    assert StackSizes(_WHOLE).of(0x1000) == 0
    assert StackSizes(_WHOLE).of(_START + _SIZE + 8) == 0


def test_a_thousand_threads_with_pointers_anywhere_take_a_quarter_of_a_gigabyte() -> None:
    """Those that come last still have the frames that fit into some kilobytes."""
    sizes = StackSizes(_WHOLE)
    read = [sizes.of(_START) for _ in range(1000)]
    assert sum(read) < 300 << 20
    assert min(read) == 16 << 10


def test_what_is_kept_counts_in_the_next_round() -> None:
    assert StackSizes(_WHOLE, read=1 << 28).of(_START) == 16 << 10
