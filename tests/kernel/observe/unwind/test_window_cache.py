"""Windows that were built in an earlier run are copied; no other user can have put them there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from purebpf import objects
from purebpf.loader.load.load import load
from purebpf.observe.unwind.process_stacks import ProcessStacks
from purebpf.observe.unwind.walk_tables import WalkTables
from purebpf.observe.unwind.window_cache import WindowCache
from purebpf.unwind.windows import WINDOW_BITS

pytestmark = pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf", "x86_64")


def _build(cache: WindowCache) -> tuple[dict[int, list[int]], float]:
    """The blocks of our own libc as published, by window, and the CPU time that it took."""
    spec = objects.spec("stack_walk").only("walk_sampled")
    with load(spec) as loaded, WalkTables(loaded.maps, cache) as tables, ProcessStacks() as stacks:
        program = stacks._programs.read(os.getpid(), time.monotonic_ns())
        assert program is not None
        text = Path("/proc/self/maps").read_text().splitlines()
        start = next(
            int(row.split("-")[0], 16) for row in text if "libc.so.6" in row and "r-x" in row
        )
        mapping = program.space.find(start)
        assert mapping is not None
        cfi = stacks.file(mapping.file)
        assert cfi is not None
        tables.publish(1, 1, program.space, stacks.file)
        begun = time.thread_time()
        missing = tables.files.missing(mapping.file, cfi, start - mapping.bias)
        assert missing is not None
        for _ in tables.files.build(missing, cfi):
            pass
        took = time.thread_time() - begun
        file = tables.files._files[mapping.file]
        shards = tables._shards
        blocks = {}
        for window in range(file.windows):
            at = shards.read_word(file.index + window)
            blocks[window] = list(shards.read(at + 1, shards.read_word(at)))
        rules = bytes(tables.files._memory.view[8 * file.rules :][: 8 * file.rules_room])
        blocks[-1] = list(rules)
        assert (
            tables.files.missing(mapping.file, cfi, (cfi.first_window + 9) << WINDOW_BITS) is None
        )
        return blocks, took


def test_a_hit_gives_the_same_and_takes_little(tmp_path: Path) -> None:
    directory = str(tmp_path / "windows")
    first = WindowCache(directory)
    built, slow = _build(first)
    assert (first.hits, first.rejected) == (0, 0)
    (kept,) = os.listdir(directory)
    assert os.stat(f"{directory}/{kept}").st_mode & 0o777 == 0o600
    second = WindowCache(directory)
    copied, quick = _build(second)
    assert (second.hits, second.rejected) == (1, 0)
    assert copied == built
    assert quick < slow / 3


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "other"])
def test_a_damaged_file_is_not_taken_and_counted(tmp_path: Path, damage: str) -> None:
    directory = tmp_path / "windows"
    built, _ = _build(WindowCache(str(directory)))
    (kept,) = directory.iterdir()
    data = bytearray(kept.read_bytes())
    if damage == "changed":
        data[len(data) // 2] ^= 1
    kept.write_bytes({"cut": data[:-8], "changed": data, "empty": b"", "other": b"x" * 999}[damage])
    cache = WindowCache(str(directory))
    again, _ = _build(cache)
    assert (cache.hits, cache.rejected) == (0, 1)
    assert again == built
    better = WindowCache(str(directory))
    assert _build(better)[0] == built
    assert better.hits == 1


@pytest.mark.parametrize("change", ["writable directory", "writable file", "link", "fifo"])
def test_what_others_could_have_written_is_not_taken(tmp_path: Path, change: str) -> None:
    directory = tmp_path / "windows"
    built, _ = _build(WindowCache(str(directory)))
    (kept,) = directory.iterdir()
    if change == "writable directory":
        directory.chmod(0o777)
    elif change == "writable file":
        kept.chmod(0o666)
    elif change == "link":
        kept.rename(tmp_path / "moved")
        kept.symlink_to(tmp_path / "moved")
    else:
        kept.unlink()
        os.mkfifo(kept)
    cache = WindowCache(str(directory))
    assert _build(cache)[0] == built
    assert cache.hits == 0


def test_the_oldest_go(tmp_path: Path) -> None:
    cache = WindowCache(str(tmp_path / "windows"))
    built, _ = _build(cache)
    (kept,) = (tmp_path / "windows").iterdir()
    for n in range(5):
        other = kept.with_name(f"{n:040x}-0")
        other.write_bytes(kept.read_bytes())
        os.utime(other, (n, n))
    small = WindowCache(str(tmp_path / "windows"), limit=3 * kept.stat().st_size)
    kept.unlink()
    assert _build(small)[0] == built
    assert sorted(p.name[39:40] for p in (tmp_path / "windows").iterdir() if p != kept) == [
        "3",
        "4",
    ]
