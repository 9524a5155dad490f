"""Words for Java frames among addresses."""

from __future__ import annotations

from purebpf.symbols.java_words import (
    MOST_COPIED,
    has_java,
    is_java,
    no_method_word,
    split_java,
    user_space_word,
)
from purebpf.symbols.python_words import TAG, count_native

JAVA = 0x2A6 << 53


def test_words_are_no_addresses_and_none_of_python() -> None:
    assert is_java(JAVA)
    assert is_java(JAVA | (1 << 53) - 1)
    assert not any(is_java(each) for each in (0, 0x7FFF_FFFF_FFFF, TAG, TAG | (1 << 53) - 1))
    assert not any(is_java(each) for each in (0xFFFF_FFFF_FF60_0000, (1 << 64) - 1))
    assert count_native([JAVA, 0x1000, JAVA, TAG]) == 3
    assert has_java([0x1000, JAVA])
    assert not has_java([0x1000, TAG])


def test_parts_of_a_word() -> None:
    assert split_java(JAVA | 0x1034567 << 24 | 0x7FFFFF) == (0x1034567, 0x7FFFFF, False, None)
    assert split_java(JAVA | 5 << 24 | 1 << 23 | 7) == (5, 7, False, None)
    assert split_java(JAVA | 1 << 52 | 5 << 24 | 1 << 16 | 9) == (5, 9, True, None)
    assert split_java(JAVA | 1 << 22 + 24).number == -1
    assert split_java(no_method_word()).number == -1


def test_words_of_user_space_are_none_of_bpf() -> None:
    for number in (0, 1, (1 << 17) - 1, 1 << 17, MOST_COPIED):
        word = user_space_word(number)
        assert is_java(word)
        assert split_java(word).copied == number
        assert split_java(word).number >> 17 & 511 == 511  # no CPU has this number
    assert split_java(JAVA | 0xFFFFFFF << 24).copied is None  # NO_METHOD of BPF
