"""A type may give one name to 65,535 members: what is made of it costs as much as of others."""

from __future__ import annotations

import time

from purebpf.btf.codec.columns import dtype_of
from purebpf.btf.types.names import legal_names
from tests.support.builders.btf_builder import BtfBuilder


def test_65535_equal_names_are_numbered_quickly() -> None:
    before = time.process_time()
    names = legal_names(["same"] * 65_535)
    assert time.process_time() - before < 2
    assert len(set(names)) == 65_535
    assert names[:3] == ["same", "same_2", "same_3"]
    assert names[-1] == "same_65535"


def test_columns_of_bit_fields() -> None:
    builder = BtfBuilder()
    word = builder.int("unsigned int", 4)
    bits = [("same", word, 32 * n, 3) for n in range(4000)]
    found = builder.struct("s", bits, size=4 * 4000)
    before = time.process_time()
    names = dtype_of(builder.btf(), found)["names"]
    assert time.process_time() - before < 5
    assert len(names) == 4000
    assert len(set(names)) == 4000


def test_legal_names_that_look_like_numbered_ones() -> None:
    names = ["a", "a_2", "a", "a", "a_2"]
    assert legal_names(names) == ["a", "a_2", "a_3", "a_4", "a_2_2"]
