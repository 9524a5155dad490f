"""Saved profiles are read; what is not one, or not all of one, is reported."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest

import purebpf
from purebpf.errors import FormatError, KernelError, NotSupportedError
from purebpf.observe.saved import profile_loader
from purebpf.results import Profile
from purebpf.results.formats import folded, json, pprof, writer
from tests.fuzz import perf_data_seeds
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


def test_the_public_function_reads_what_convert_reads(tmp_path: Path) -> None:
    example = profiles.example()
    for name in ("folded", "json", "pprof", "speedscope", "perf.data"):
        path = tmp_path / f"saved.{name}"
        pieces = writer.write(example, name)
        path.write_bytes(b"".join(p.encode() if isinstance(p, str) else p for p in pieces))
        (total,) = {purebpf.read_profile(place).total for place in (path, str(path))}
        period = 10_101_010 if name == "pprof" else 1  # it weighs in ns too, at 99 Hz
        assert total == period * example.total, name
    with pytest.raises(purebpf.KernelError):
        purebpf.read_profile(tmp_path / "nothing")


def test_names_need_not_be_utf8(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    path.write_bytes(b"caf\xe9;leaf 2\n")
    (row,) = profile_loader.read(str(path)).rows()
    assert row.labels.comm == "caf\udce9"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("data", [FOLDED, TEXT])
def test_texts_with_a_byte_order_mark_are_read(data: bytes, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "saved"
    text = data.decode()
    path.write_bytes((text if encoding != "utf-16-be" else f"\ufeff{text}").encode(encoding))
    assert profile_loader.read(str(path)).total == profiles.example().total


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "the file is empty"),
        (gzip.compress(TEXT)[:-9], "truncated"),
        (gzip.compress(TEXT)[:3], "truncated"),
        (b"\x1f\x8bnot gzip at all", "gzip: "),
        (HALVES[:-9], "truncated"),
        (HALVES + bytes(3) + b"x", "gzip: the compressed data is damaged"),
        (HALVES + b"x", "gzip: the compressed data is damaged"),
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


def test_packed_text_is_not_unpacked_beyond_its_limit(tmp_path: Path) -> None:
    """Some hundred kilobytes of another user would take gigabytes of memory."""
    path = tmp_path / "saved"
    with gzip.open(path, "wb") as file:
        for _ in range(600):
            file.write(bytes(1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=r"more than 256 MB\. Unpack it with gunzip"):
            profile_loader.read(str(path))
        assert tracemalloc.get_traced_memory()[1] < 700 << 20
    finally:
        tracemalloc.stop()


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


BOUNDS = profile_loader.Bounds(size=4_000, lines=100, frames=1_000, lists=100, seconds=60.0)


def lines_left_out(profile: Profile) -> int:
    return next((cause.lost for cause in profile.loss.causes if cause.name == "lines_left_out"), 0)


@pytest.mark.parametrize(
    ("text", "bounds", "read"),
    [
        (b"sh;main 1\n" * 100, BOUNDS, 100),
        (b"sh;main 1\n" * 101, BOUNDS, 100),
        (b"sh;main 1\n" * 150 + b"sh;main 1", BOUNDS, 100),
        (b"sh;a;b;c 1\n" * 399, BOUNDS._replace(lines=1_000), 333),  # frames
        (b"sh;main 1\n" * 1_000, BOUNDS._replace(lines=10_000, frames=10_000), 400),  # bytes
    ],
)
def test_lines_beyond_the_bounds_are_left_out_and_counted(
    text: bytes, bounds: profile_loader.Bounds, read: int, tmp_path: Path
) -> None:
    path = tmp_path / "saved.folded"
    written = len(text.splitlines())
    for content in (text, gzip.compress(text)):
        path.write_bytes(content)
        profile = profile_loader.read(str(path), bounds=bounds)
        assert profile.total == read
        assert lines_left_out(profile) == written - read
        assert profile.loss.any == (written > read)
        assert profile_loader.read(str(path)).total == written


def test_lines_are_read_for_so_many_seconds(tmp_path: Path) -> None:
    path = tmp_path / "saved.folded"
    path.write_bytes(b"".join(b"sh;main;%d 1\n" % number for number in range(50_000)))
    bounds = profile_loader.Bounds(1 << 30, 1 << 30, 1 << 30, 1 << 30, 0.01)
    profile = profile_loader.read(str(path), bounds=bounds)
    assert 0 < profile.total < 50_000
    assert profile.total + lines_left_out(profile) == 50_000


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (TEXT + b" " * 4_000, "size: more than 4 kB"),
        (b'{"schema":[' + b"[]," * 101 + b"0]}", "size: more than 100 lists or objects"),
        (b'{"schema":[' + b"{}," * 101 + b"0]}", "size: more than 100 lists or objects"),
        (gzip.decompress(pprof.document(profiles.example())), "size: more than 0 kB"),
        (b"a;" * 4_000 + b"b 1\n", "line 1: more than 4 kB"),
    ],
)
def test_what_cannot_be_read_in_part_is_refused(data: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "saved"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=problem):
        profile_loader.read(str(path), bounds=BOUNDS)


def test_perf_data_is_read_for_so_many_seconds(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    data = next(perf_data_seeds.files())
    for content in (data, gzip.compress(data)):
        path.write_bytes(content)
        with pytest.raises(FormatError, match="takes longer than 0 seconds"):
            profile_loader.read(str(path), bounds=BOUNDS._replace(seconds=0.0))
        profile_loader.read(str(path), bounds=BOUNDS._replace(size=1 << 20))


def test_a_line_of_names_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile_loader, "_MOST_FRAMES", 4 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b";" * (5 << 20) + b" 1\n"))
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="more than 4194304 frames"):
            profile_loader.read(str(path))
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_a_pipe_that_nobody_writes_to_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purebpf.files.input_file._PATIENCE_S", 0.0)
    os.mkfifo(tmp_path / "saved")
    with pytest.raises(KernelError, match="no process has this pipe open for writing"):
        profile_loader.read(str(tmp_path / "saved"))


def test_a_directory_of_perf_is_read_or_refused_in_words(tmp_path: Path) -> None:
    """`perf record --kcore` writes its file into one, and `--threads` a file for each thread."""
    folder = tmp_path / "perf.data"
    folder.mkdir()
    with pytest.raises(KernelError, match="none that perf record wrote"):
        profile_loader.read(str(folder))
    (folder / "data").write_bytes(b"PERFILE2")
    (folder / "data.0").touch()
    with pytest.raises(FormatError, match=r"header"):
        profile_loader.read(str(folder))
    (folder / "data.0").write_bytes(bytes(8))
    with pytest.raises(NotSupportedError, match=r"perf script -i .* \| purebpf convert -"):
        profile_loader.read(str(folder))
