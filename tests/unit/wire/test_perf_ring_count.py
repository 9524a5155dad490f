"""Records are counted by type."""

from __future__ import annotations

import pytest

from purebpf.errors import FormatError
from purebpf.wire.perf_ring import HEADER, count_types


def record(type_: int, size: int) -> bytes:
    return HEADER.pack(type_, 0, size) + bytes(size - HEADER.size)


def test_every_record_counts_once() -> None:
    data = record(9, 48) + record(2, 24) + record(9, 16) + record(9, 8)
    assert count_types(data) == {9: 3, 2: 1}
    assert not count_types(b"")


def test_a_record_without_a_header_is_no_record() -> None:
    with pytest.raises(FormatError, match="a record of 0 bytes"):
        count_types(record(9, 16) + bytes(8))
