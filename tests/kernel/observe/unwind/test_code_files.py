"""Files of the unwinder are opened once, and asked whether they are the same from then on."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.observe.unwind import code_files
from purebpf.observe.unwind.code_files import CodeFiles
from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.syscall import proc

_LIBRARY = next(
    mapping
    for mapping in parse_maps(proc.maps(os.getpid()) or "")
    if mapping.file.path.rpartition("/")[2].startswith(("libc.so", "libm.so", "ld-linux"))
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A library that this test may write to."""
    path = tmp_path / "library.so"
    path.write_bytes(Path(_LIBRARY.file.path).read_bytes())
    return path


@pytest.fixture
def mapped(copy: Path) -> Iterator[Mapping]:
    """Where its code is mapped."""
    size, offset = _LIBRARY.end - _LIBRARY.start, _LIBRARY.offset
    with copy.open("rb") as file:
        code = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ | mmap.PROT_EXEC, offset=offset)
        maps = parse_maps(proc.maps(os.getpid()) or "")
        yield next(mapping for mapping in maps if mapping.file.path == str(copy))
        code.close()


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of what was opened."""
    paths: list[str] = []
    whole = code_files.open_place

    def count(mapping: Mapping, pids: tuple[int, ...]) -> tuple[int, bool]:
        paths.append(mapping.file.path)
        return whole(mapping, pids)

    monkeypatch.setattr(code_files, "open_place", count)
    return paths


def test_a_file_is_opened_once(mapped: Mapping, opens: list[str]) -> None:
    with CodeFiles() as files:
        first = files.mapping(mapped, os.getpid())
        assert first.file is not None
        assert files.mapping(mapped, os.getpid()) == first
        other = mapped._replace(start=mapped.start + (1 << 30), end=mapped.end + (1 << 30))
        assert files.mapping(other, os.getpid()).file == first.file
    assert len(opens) == 1


def test_a_file_that_was_written_to_is_another_one_at_once(
    copy: Path, mapped: Mapping, opens: list[str]
) -> None:
    with CodeFiles() as files:
        before = files.mapping(mapped, os.getpid()).file
        status = copy.stat()
        os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        after = files.mapping(mapped, os.getpid()).file
        assert after not in (None, before)
    assert len(opens) == 2


def test_a_file_of_another_device_is_opened_once_a_second(
    mapped: Mapping, opens: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On btrfs stat(2) has a device of its own; a link tells that it is the mapped one."""
    file = mapped.file._replace(minor=mapped.file.minor + 1000)
    elsewhere = mapped._replace(file=file)
    here, there = (f" {each.major:02x}:{each.minor:02x} " for each in (mapped.file, file))
    maps = (proc.maps(os.getpid()) or "").replace(here, there)
    monkeypatch.setattr(proc, "maps", lambda _: maps)
    with CodeFiles() as files:
        now = 1000.0
        monkeypatch.setattr(code_files.time, "monotonic", lambda: now)
        first = files.mapping(elsewhere, os.getpid()).file
        assert first is not None
        now += 0.9
        assert files.mapping(elsewhere, os.getpid()).file == first
        assert len(opens) == 1
        now += 0.2
        assert files.mapping(elsewhere, os.getpid()).file == first
        assert len(opens) == 2
        assert files.held(elsewhere, os.getpid()) is not None
        assert files.held(elsewhere, 1 << 22) is None, "it may be another snapshot's"


def test_an_open_file_is_found_when_it_has_no_path_any_more(copy: Path, mapped: Mapping) -> None:
    with CodeFiles() as files:
        assert files.held(mapped, os.getpid()) is None
        files.mapping(mapped, os.getpid())
        inode = copy.stat().st_ino
        copy.unlink()
        for file in (mapped.file, mapped.file._replace(deleted=True)):
            fd = files.held(mapped._replace(file=file), 1 << 22)
            assert fd is not None
            assert os.fstat(fd).st_ino == inode
    assert files.held(mapped, os.getpid()) is None


def test_an_open_file_is_found_by_another_path_of_its_process(copy: Path, mapped: Mapping) -> None:
    """Where it has called chroot(2), records have its own path, and /proc/PID/maps another one."""
    other = mapped._replace(file=mapped.file._replace(path="/app"))
    with CodeFiles() as files:
        for pid in (1 << 22, os.getpid()):  # the second finds it open
            files.mapping(mapped, pid)
        copy.unlink()
        assert files.held(other, os.getpid()) is not None
        assert files.held(other, (1 << 22) + 1) is None
        wrong = other._replace(file=other.file._replace(inode=other.file.inode + 1))
        assert files.held(wrong, os.getpid()) is None
    assert files.held(other, os.getpid()) is None


def test_an_open_file_that_was_written_to_is_not_the_mapped_one(
    copy: Path, mapped: Mapping
) -> None:
    with CodeFiles() as files:
        files.mapping(mapped, os.getpid())
        assert files.held(mapped, os.getpid()) is not None
        status = copy.stat()
        os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        assert files.held(mapped, os.getpid()) is None


def test_a_closed_file_is_not_read_by_the_descriptor_of_another_one(
    copy: Path, mapped: Mapping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rules may be under construction when others push it out."""
    monkeypatch.setattr(code_files, "_FEWEST", 1)
    monkeypatch.setattr(code_files, "_MOST", 1)
    with CodeFiles() as files:
        first = files.mapping(mapped, os.getpid())
        rules = files.find(first.file)
        assert rules is not None
        files.mapping(_LIBRARY, os.getpid())
        assert files.find(first.file) is None
        other = copy.with_name("other")
        other.write_bytes(b"\xcc" * copy.stat().st_size)
        with other.open("rb"):
            assert rules.code(rules.text.start, 16) == b""


def test_code_of_the_kernel_is_in_no_file(opens: list[str]) -> None:
    maps = parse_maps(proc.maps(os.getpid()) or "")
    special = [mapping for mapping in maps if mapping.file.path == "[vsyscall]"]
    with CodeFiles() as files:
        assert not any(files.mapping(mapping, os.getpid()).file for mapping in special)
    assert not opens
