"""Damaged files are described in words, not in those of Python's exceptions."""

from __future__ import annotations

import gzip
import random
import re
import struct
from collections.abc import Callable

import pytest

from purebpf.damage import describe
from purebpf.errors import FormatError
from purebpf.results.formats import json as own
from purebpf.results.formats import pprof, pprof_reader, speedscope, speedscope_reader
from tests.support.builders import profiles

_PYTHONS = re.compile(
    r"out of range|unpack|requires a buffer|invalid literal|NoneType|codec can't|not subscriptable"
    r"|unsupported operand|object has no|too many values|could not convert|zip\(\)|Error\b"
)
"""The words of Python's own exceptions."""


def _raised(call: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is the parameter's matter
        call()
    return caught.value


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: range(2)[3], "refers to an entry that it does not have"),
        (lambda: {}["frames"], "'frames' is missing"),
        (lambda: {}[7], "it refers to 7, which it does not have"),
        (lambda: struct.unpack("<I", b"a"), "a record is cut off"),
        (b"\xff".decode, "a text is not UTF-8"),
        (lambda: int("x" * 9), "not a number: 'xxxxxxxxx'"),
        (lambda: float("y"), "not a number: 'y'"),
        (lambda: (1).to_bytes(0, "little"), "a number is too large"),
        (lambda: len(3), "a value has another type"),  # type: ignore[arg-type]
        (lambda: list(zip([1], [], strict=True)), "two lists that belong together"),
    ],
)
def test_an_exception_of_pythons_has_words(call: Callable[[], object], words: str) -> None:
    text = describe(_raised(call))
    assert words in text
    assert not _PYTHONS.search(text)


def test_a_sentence_of_purebpf_stays() -> None:
    assert describe(ValueError("a time of nan")) == "a time of nan"


_FILES: dict[str, tuple[bytes, Callable[[bytes], object]]] = {
    "pprof": (gzip.decompress(pprof.document(profiles.example())), pprof_reader.parse),
    "speedscope": (
        speedscope.document(profiles.example()).encode(),
        lambda data: speedscope_reader.parse(data.decode(errors="replace")),
    ),
    "json": (
        own.document(profiles.example()).encode(),
        lambda data: own.parse(data.decode(errors="replace")),
    ),
}


def _damaged(whole: bytes) -> list[bytes]:
    """Files that are cut off, that lack a piece, and that have other bytes and numbers."""
    chance = random.Random(1)  # noqa: S311
    damaged = [whole[: len(whole) * part // 50] for part in range(50)]
    for _ in range(400):
        begin, end = sorted(chance.randrange(len(whole)) for _ in "12")
        damaged.append(whole[:begin] + whole[min(end, begin + 20) :])
        copy = bytearray(whole)
        copy[begin] = chance.choice(b'\0\x7f\xff09-n["')
        damaged.append(bytes(copy))
    damaged += [
        re.sub(rb'"%s"' % name, b'"%s_"' % name, whole)
        for name in set(re.findall(rb'"(\w+)"', whole))
    ]
    return damaged


@pytest.mark.parametrize("kind", _FILES)
def test_a_damaged_profile_is_refused_in_words(kind: str) -> None:
    whole, parse = _FILES[kind]
    refused = set()
    for data in _damaged(whole):
        try:
            parse(data)
        except FormatError as error:
            refused.add(str(error))
    assert len(refused) > 5
    assert [text for text in refused if _PYTHONS.search(text)] == []
