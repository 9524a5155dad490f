"""The tables of the walk: what they hold, what they take, and what goes when they are full."""

from __future__ import annotations

import errno
import os
import time
from array import array
from itertools import pairwise

import pytest

from purebpf import objects
from purebpf.errors import KernelError
from purebpf.loader.load.load import load
from purebpf.observe.unwind import code_files, file_tables, pieces
from purebpf.observe.unwind.code_files import CodeFiles
from purebpf.observe.unwind.process_stacks import ProcessStacks
from purebpf.observe.unwind.walk_tables import WalkTables
from purebpf.observe.unwind.window_cache import WindowCache
from purebpf.observe.unwind.word_shards import SHARD_WORDS, NoRoomError, WordShards
from purebpf.symbols.proc_maps import parse_maps
from purebpf.syscall import proc
from purebpf.syscall.backend import replaced
from purebpf.unwind.address_space import AddressSpace, CodeMapping
from purebpf.unwind.windows import WINDOW_BITS
from tests.support.host.backends import Call, Interposer
from tests.unit.unwind.cfi_builder import TEXT, Section, advance, cfa_offset

pytestmark = pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf", "x86_64")


def _spec(**sizes):
    return objects.spec("stack_walk").only("walk_sampled").resize(**sizes)


def _tables(loaded):
    return WalkTables(loaded.maps, WindowCache("/dev/null/windows"))


def _space(*files):
    return AddressSpace(
        [
            CodeMapping(n << 20, (n << 20) + 65536, (n << 20) - TEXT, key)
            for n, key in enumerate(files, 1)
        ]
    )


def _cfi(number):
    """A file with rules of its own."""
    section = Section()
    for function in range(40):
        code = b"".join(advance(8) + cfa_offset(16 + 8 * (number + n)) for n in range(20))
        section.fde(TEXT + 1024 * function, 1000, code)
    return section.cfi()


def _build(tables, key, cfi):
    """Whether there was anything to build."""
    missing = tables.files.missing(key, cfi, TEXT)
    if missing is not None:
        for _ in tables.files.build(missing, cfi):
            pass
    return missing is not None


def test_shards_hand_out_each_word_once():
    with load(_spec()) as loaded, WordShards(loaded.maps["shards"]) as shards:
        counts = (1, 9, SHARD_WORDS - 8, 8, 3)
        taken = [(shards.take(count), count) for count in counts]
        ends = sorted((at, at + count) for at, count in taken)
        assert all(end <= start for (_, end), (start, _) in pairwise(ends))
        assert {at >> 18 for at, _ in taken[:2]} == {0}
        assert taken[0][0]
        shards.write(taken[1][0], array("I", range(9)))
        shards.write_word(taken[1][0] + 8, 77)
        assert shards.read_word(taken[1][0] + 8) == 77
        assert list(shards.read(taken[1][0], 9)) == [*range(8), 77]
        with pytest.raises(NoRoomError):
            shards.take(SHARD_WORDS + 1)
        assert shards.nbytes == 2 * 4 * SHARD_WORDS


def test_a_shard_without_memory_is_named_at_first_and_no_room_later():
    def decide(call: Call) -> int | None:
        return errno.ENOMEM if call.command == "BPF_MAP_CREATE" else None

    with load(_spec()) as loaded, WordShards(loaded.maps["shards"]) as shards:
        with replaced(Interposer(decide)), pytest.raises(KernelError) as caught:
            shards.take(1)
        assert "map 'unwind rules' (ARRAY" in str(caught.value)
        shards.take(SHARD_WORDS - 8)
        with replaced(Interposer(decide)), pytest.raises(NoRoomError):
            shards.take(1)
        assert shards.nbytes == 4 * SHARD_WORDS


def test_files_that_no_process_has_go_when_they_take_too_much(monkeypatch):
    monkeypatch.setattr(file_tables, "_UNUSED_WORDS", 4000)
    monkeypatch.setattr(pieces, "GRACE_S", -1.0)
    with load(_spec()) as loaded, _tables(loaded) as tables:
        known = {f"file {n}": _cfi(n) for n in range(60)}
        for n, key in enumerate(known):
            tables.publish(n, 1, _space(key), known.get)
            assert _build(tables, key, known[key])
            assert not _build(tables, key, known[key])
            tables.withdraw(n)
        assert tables.files.evicted > 30
        assert 1 < len(tables.files) < 30
        assert tables.nbytes == 4 * SHARD_WORDS
        numbers = [tables.files.use(key, known[key]).number for key in list(known)[-3:]]
        for number in numbers:
            assert loaded.maps["exes"][number].index
        assert tables.full == 0
        assert max(numbers) < 30


def test_files_that_are_used_stay(monkeypatch):
    monkeypatch.setattr(file_tables, "_UNUSED_WORDS", 0)
    monkeypatch.setattr(pieces, "GRACE_S", -1.0)
    with load(_spec()) as loaded, _tables(loaded) as tables:
        known = {f"file {n}": _cfi(n) for n in range(20)}
        tables.publish(1, 1, _space("file 0", "file 1"), known.get)
        tables.fork(1, 2, 99)
        tables.withdraw(1)
        for key in ("file 0", "file 1"):
            assert _build(tables, key, known[key])
        for n in range(2, 20):
            tables.publish(100 + n, 1, _space(f"file {n}"), known.get)
            assert _build(tables, f"file {n}", known[f"file {n}"])
            tables.withdraw(100 + n)
        assert len(tables.files) == 2
        process = loaded.maps["procs"][2]
        assert (process.count, process.identity, process.is_forked) == (2, 99, 1)
        tables.withdraw(2)
        assert len(tables.files) == 0
        assert not list(loaded.maps["procs"])


@pytest.mark.parametrize("table", ["exes", "rules", "shards"])
def test_a_full_table_is_counted_and_recovers(monkeypatch, table):
    monkeypatch.setattr(pieces, "GRACE_S", 0.3)
    sizes = {"exes": 5, "rules": 100, "shards": 1}
    with load(_spec(**{table: sizes[table]})) as loaded, _tables(loaded) as tables:
        known = {f"file {n}": _cfi(n) for n in range(300)}
        filler = None
        if table == "shards":
            filler = tables._shards.take(SHARD_WORDS - 2000)
        for n, key in enumerate(list(known)[:8]):
            tables.publish(n, 1, _space(key), known.get)
            _build(tables, key, known[key])
        assert tables.full > 0
        for n in range(8):
            tables.withdraw(n)
        full = tables.full
        if filler:
            tables._shards.give_back(filler, SHARD_WORDS - 2000)
        time.sleep(0.4)
        tables.publish(9, 1, _space("file 99"), known.get)
        assert _build(tables, "file 99", known["file 99"])
        assert tables.full == full


def test_call_sites_go_with_their_file(monkeypatch):
    monkeypatch.setattr(file_tables, "_UNUSED_WORDS", 0)
    with load(_spec()) as loaded, _tables(loaded) as tables:
        cfi = _cfi(1)
        tables.publish(1, 1, _space("a"), {"a": cfi}.get)
        _build(tables, "a", cfi)
        tables.files.confirm_call("a", TEXT + 5)
        tables.files.confirm_call("a", TEXT + 5)
        assert len(loaded.maps["call_sites"]) == 1
        tables.withdraw(1)
        assert len(loaded.maps["call_sites"]) == 0


@pytest.mark.alone
def test_all_that_this_machine_runs_takes_16_megabytes():
    """Every process that we may read, with all of its small files, and 1 MiB of each large one.

    Files with more than 256 MiB of code, such as the library of ClickHouse, have no tables.
    """
    with load(_spec()) as loaded, _tables(loaded) as tables, ProcessStacks() as stacks:
        for pid in proc.pids():
            program = stacks._programs.read(pid, time.monotonic_ns())
            if program is None:
                continue
            tables.publish(pid, 1, program.space, stacks.file)
            for mapping in program.space.mappings:
                cfi = stacks.file(mapping.file) if mapping.file else None
                if cfi is not None and cfi.window_count < SHARD_WORDS:
                    first = cfi.first_window
                    for window in range(first, first + min(1024, cfi.window_count)):
                        missing = tables.files.missing(mapping.file, cfi, window << WINDOW_BITS)
                        if missing is not None:
                            for _ in tables.files.build(missing, cfi):
                                pass
        assert tables.rows > 10_000
        assert tables.full == 0
        assert tables.nbytes <= 16 << 20


def test_a_file_that_is_opened_again_keeps_the_numbers_of_its_rules(monkeypatch):
    monkeypatch.setattr(code_files, "_MOST", 1)
    monkeypatch.setattr(code_files, "_FEWEST", 1)
    mappings = [
        mapping for mapping in parse_maps(proc.maps("self") or "") if not mapping.file.is_anonymous
    ]
    library = next(m for m in mappings if m.file.path.rpartition("/")[2].startswith("libc.so"))
    other = next(m for m in mappings if m.file.path not in (library.file.path, "[vdso]"))
    with CodeFiles() as files, load(_spec()) as loaded, _tables(loaded) as tables:
        key = files.mapping(library, os.getpid()).file
        cfi = files.find(key)
        published = tables.files.use(key, cfi)
        cfi.window(cfi.first_window + cfi.window_count - 1)
        rules = list(cfi.table.rules)
        assert files.mapping(other, os.getpid()).file is not None
        assert files.find(key) is None
        assert files.mapping(library, os.getpid()).file == key
        again = files.find(key)
        assert again is not cfi
        again.window(again.first_window)
        assert again.table is published.table
        assert again.table.rules[: len(rules)] == rules
