"""Files that two runs write at the same time: each file is whole, of one run or of the other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.files.atomic_file import PartFile
from purebpf.files.cache_files import CacheFiles
from purebpf.services.agent.write_in import write_in

OUTER, INNER = b"outer" * 1000, b"inner" * 10


def test_a_file_of_the_cache_that_two_processes_with_one_number_write(tmp_path: Path) -> None:
    """Containers share the cache of a home, and their first processes all have the same number."""
    cache = CacheFiles(str(tmp_path / "cache"), 1 << 20)

    def contents() -> Iterator[bytes]:
        yield OUTER[:2500]
        cache.keep("key", [INNER])
        assert (tmp_path / "cache/key").read_bytes() == INNER
        yield OUTER[2500:]

    cache.keep("key", contents())
    assert (tmp_path / "cache/key").read_bytes() == OUTER
    assert os.listdir(tmp_path / "cache") == ["key"]


@pytest.mark.parametrize("unnamed", [True, False])
def test_a_file_of_two_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, unnamed: bool
) -> None:
    whole, waiting = os.fsync, [INNER]

    def fsync(fd: int) -> None:
        whole(fd)
        while waiting:
            write_in(folder, "metrics.prom", waiting.pop())
            assert (tmp_path / "metrics.prom").read_bytes() == INNER

    monkeypatch.setattr(os, "fsync", fsync)
    if not unnamed:
        monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY | os.O_WRONLY)  # a kernel without it
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        write_in(folder, "metrics.prom", OUTER, 0o640)
    finally:
        os.close(folder)
    assert (tmp_path / "metrics.prom").read_bytes() == OUTER
    assert (tmp_path / "metrics.prom").stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["metrics.prom"]


@pytest.mark.parametrize("named", [True, False])
def test_a_result_of_two_runs(tmp_path: Path, *, named: bool) -> None:
    path = tmp_path / "result"
    outer = PartFile(str(path), named=named)
    with open(outer.fd, "wb") as first:
        first.write(OUTER[:2500])
        first.flush()
        inner = PartFile(str(path), named=named)
        with open(inner.fd, "wb") as second:
            second.write(INNER)
        inner.commit()
        assert path.read_bytes() == INNER
        first.write(OUTER[2500:])
    outer.commit()
    assert path.read_bytes() == OUTER
    assert os.listdir(tmp_path) == ["result"]
