"""Records are counted by type."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.errors import FormatError
from purebpf.wire.perf_count import count_types
from purebpf.wire.perf_ring import HEADER


def record(type_: int, size: int) -> bytes:
    return HEADER.pack(type_, 0, size) + bytes(size - HEADER.size)


def test_every_record_counts_once() -> None:
    data = record(9, 48) + record(2, 24) + record(9, 16) + record(9, 8)
    assert count_types(data) == {9: 3, 2: 1}
    assert not count_types(b"")


def test_a_record_without_a_header_is_not_counted() -> None:
    with pytest.raises(FormatError, match="a record of 0 bytes"):
        count_types(record(9, 16) + bytes(8))


@given(
    st.lists(
        st.tuples(
            st.sampled_from([2, 9]),
            st.sampled_from([0, 2, 16]),
            st.sampled_from([8, 24, 48, 128]),
            st.one_of(st.integers(1, 9), st.integers(60, 300)),
        ),
        max_size=8,
    )
)
def test_runs_of_equal_headers_count_as_single_records(
    runs: list[tuple[int, int, int, int]],
) -> None:
    data, expected = b"", Counter[int]()
    for type_, misc, size, count in runs:
        # a body that looks like a header must not be taken for one
        body = HEADER.pack(9, 2, 48) * (size // 8 - 1)
        data += (HEADER.pack(type_, misc, size) + body) * count
        expected[type_] += count
    assert count_types(data) == expected


def test_a_run_that_ends_in_a_broken_record() -> None:
    with pytest.raises(FormatError, match="a record of 0 bytes"):
        count_types(record(9, 24) * 500 + bytes(24) + record(9, 24))
