"""Words of a copied stack, at any address and up to its last byte."""

from __future__ import annotations

import pytest

from purebpf.unwind.stack_copy import OutsideError, StackCopy


@pytest.mark.parametrize("word", [4, 8])
@pytest.mark.parametrize("size", [0, 3, 4, 5, 7, 8, 9, 23, 24])
def test_a_word_is_the_bytes_at_its_address(size: int, word: int) -> None:
    data = bytes(range(1, size + 1))
    copy = StackCopy(0x7FFE_0000_1003, data, word)
    for at in range(-9, size + 9):
        if 0 <= at <= size - word:
            assert copy.word(copy.address + at) == int.from_bytes(data[at : at + word], "little")
        else:
            with pytest.raises(OutsideError):
                copy.word(copy.address + at)
