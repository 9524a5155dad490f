"""Whatever the bytes are: an ObjectSpec or one of our errors, soon, and in bounded memory."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from purebpf.elf import read_object
from purebpf.errors import FormatError, LinkError, NotSupportedError
from purebpf.spec import ObjectSpec

pytestmark = pytest.mark.slow


ROOT = Path(__file__).parents[3]
OBJECTS = tuple(
    path.read_bytes()
    for path in sorted((*ROOT.glob("purebpf/objects/*.bpf.o"), *ROOT.glob("tests/data/**/*.bpf.o")))
)
REFUSALS = (FormatError, LinkError, NotSupportedError)
bounded = settings(
    max_examples=600,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def read(data: bytes) -> ObjectSpec | None:
    """The spec, or None when it is refused; any other exception is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return read_object(data)
        except REFUSALS:
            return None


def test_there_is_something_to_mutate() -> None:
    assert len(OBJECTS) > 10
    assert sum(read(data) is not None for data in OBJECTS) > 8


@bounded
@given(st.sampled_from(OBJECTS), st.data())
def test_truncated_objects_are_a_format_error_at_most(whole: bytes, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(whole) - 1))
    read(whole[:end])


@bounded
@given(st.sampled_from(OBJECTS), st.data())
def test_objects_with_other_bytes(whole: bytes, data: st.DataObject) -> None:
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        offset = data.draw(st.integers(0, len(whole) - 1))
        changed[offset] = data.draw(st.sampled_from((0, 1, 0x7F, 0x80, 0xFF, changed[offset] ^ 4)))
    read(bytes(changed))


@bounded
@given(st.sampled_from(OBJECTS), st.data())
def test_objects_with_other_words(whole: bytes, data: st.DataObject) -> None:
    changed = bytearray(whole)
    offset = 4 * data.draw(st.integers(0, len(whole) // 4 - 1))
    word = data.draw(st.sampled_from((0, 1, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)))
    changed[offset : offset + 4] = word.to_bytes(4, "little")
    read(bytes(changed))


@given(st.binary(max_size=400).map(b"\x7fELF\2\1\1".__add__))
@settings(bounded, max_examples=200)
def test_bytes_after_the_magic(data: bytes) -> None:
    assert read(data) is None


def test_memory_is_bounded_by_the_file() -> None:
    """Many section headers that all claim the whole file must not multiply it."""
    whole = OBJECTS[-1]
    (start,) = (int.from_bytes(whole[40:48], "little"),)
    header = bytearray(64)
    header[4:8] = (1).to_bytes(4, "little")
    header[32:40] = len(whole).to_bytes(8, "little")
    hostile = bytearray(whole[:start] + bytes(64) + bytes(header) * 60000)
    hostile[60:62] = (60001).to_bytes(2, "little")
    tracemalloc.start()
    try:
        assert read(bytes(hostile)) is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(hostile)
