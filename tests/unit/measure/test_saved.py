"""Saved profiles are read; what is not one, or not all of one, is reported."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest

from purebpf.errors import FormatError, KernelError
from purebpf.measure import profile_loader
from purebpf.results.formats import folded, json
from tests.support.builders import profiles

TEXT = json.document(profiles.example()).encode()
FOLDED = "".join(folded.lines(profiles.example())).encode()


HALVES = gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:])
"""As two files one behind the other, or what pigz and bgzip write."""


@pytest.mark.parametrize(
    "data",
    [
        *(TEXT, FOLDED, gzip.compress(TEXT), gzip.compress(FOLDED)),
        *(HALVES, HALVES + bytes(512), gzip.compress(b"") + HALVES),
    ],
)
def test_what_was_saved_is_read(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "saved"
    path.write_bytes(data)
    assert profile_loader.read(str(path)).total == profiles.example().total


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "the file is empty"),
        (gzip.compress(TEXT)[:-9], "truncated"),
        (gzip.compress(TEXT)[:3], "truncated"),
        (b"\x1f\x8bnot gzip at all", "gzip: "),
        (HALVES[:-9], "truncated"),
        (HALVES + bytes(3) + b"x", "gzip: the file is damaged: "),
        (HALVES + b"x", "gzip: the file is damaged: "),
        (TEXT[: len(TEXT) // 2], "not JSON"),
        (b"\x7fELF\xff\xff", "not text: saved profiles are"),
        (b"#!/bin/sh\necho\n", "line 2: 'echo' does not end with a count"),
        (b"main;work " + b"9" * 4_301, "line 1: a count of 4301 digits"),
        (b"main;work 1e309", "line 1: .* does not end with a count"),
        (TEXT.replace(b'"weight":', b'"weight":1e309,"_":', 1), "JSON: 1e309 is not a finite"),
        (TEXT.replace(b'"about":{', b'"about":{"started_s":NaN,'), "JSON: NaN is not a finite"),
        (TEXT.replace(b'"about":{', b'"about":{"x":-1%0400d,' % 0), "about.x is too high"),
        (TEXT.replace(b'"about":{', b'"about":[],"_":{'), "about is an object"),
        (TEXT.replace(b'"weight":', b'"weight":1' + b"0" * 5_000 + b',"_":', 1), "JSON: "),
    ],
)
def test_what_cannot_be_read_is_reported(data: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "saved"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=problem):
        profile_loader.read(str(path))


def test_a_small_file_does_not_unpack_to_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile_loader, "_LIMIT", 1 << 20)
    path = tmp_path / "bomb.gz"
    for bomb in (gzip.compress(bytes(10 << 20)), 11 * gzip.compress(b" " * 100_000)):
        path.write_bytes(bomb)
        with pytest.raises(FormatError, match="more than 1 MB"):
            profile_loader.read(str(path))


def test_a_missing_file_is_reported() -> None:
    with pytest.raises(KernelError, match=r"profile /no/such: open\(2\) failed with ENOENT"):
        profile_loader.read("/no/such")


def test_a_small_profile_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    path.write_bytes(FOLDED)
    tracemalloc.start()
    try:
        profile_loader.read(str(path))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_process_may_be_called_like_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    path.write_bytes(b"# flame graph\n#miner;main;spin 5\n#\nsh;main 2\n")
    profile = profile_loader.read(str(path))
    assert {row.labels.comm: row.weight for row in profile.rows()} == {"#miner": 5, "sh": 2}


@pytest.mark.parametrize(
    "bomb",
    [
        b'{"schema":' + b"[]," * (6 << 20) + b"0}",
        b'{"schema":' + b"{}," * (6 << 20) + b"0}",
        b"a 1\n" * (6 << 20),
    ],
)
def test_what_unpacks_to_many_parts_is_refused(
    bomb: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile_loader, "_MOST_PARTS", 4 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bomb, 1))
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="lists, objects or lines"):
            profile_loader.read(str(path))
        assert tracemalloc.get_traced_memory()[1] < 128 << 20
    finally:
        tracemalloc.stop()


def test_text_that_is_packed_has_a_lower_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile_loader, "_UNPACKED_LIMIT", 1 << 20)
    path = tmp_path / "saved"
    text = b"{" + b" " * (2 << 20)
    path.write_bytes(gzip.compress(text))
    with pytest.raises(FormatError, match=r"more than 1 MB\. Unpack it with gunzip"):
        profile_loader.read(str(path))
    path.write_bytes(text)
    with pytest.raises(FormatError, match="not JSON"):
        profile_loader.read(str(path))


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be a hole of 300 GB in a folder that others write."""
    path = tmp_path / "hole.json"
    path.touch()
    os.truncate(path, 300 << 30)
    monkeypatch.setattr(profile_loader, "_content", None)
    with pytest.raises(FormatError, match="size: more than 1024 MB"):
        profile_loader.read(str(path))
