"""What a run that goes on gives back between two windows: it may not keep all that it ever met."""

from __future__ import annotations

import os
import time
from contextlib import suppress

import pytest

from purebpf import objects
from purebpf.loader.load.load import load
from purebpf.observe.unwind import pieces
from purebpf.observe.unwind.code_files import CodeFiles
from purebpf.observe.unwind.process_stacks import ProcessStacks
from purebpf.observe.unwind.table_filler import TableFiller
from purebpf.observe.unwind.walk_tables import WalkTables
from purebpf.observe.unwind.window_cache import WindowCache
from purebpf.observe.unwind.word_shards import SHARD_WORDS, WordShards
from purebpf.symbols.proc_maps import parse_maps
from purebpf.syscall import proc
from purebpf.unwind.address_space import AddressSpace, CodeMapping
from tests.unit.unwind.cfi_builder import TEXT, Section, advance, cfa_offset

pytestmark = pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf", "x86_64")


@pytest.fixture
def loaded():
    with load(objects.spec("stack_walk").only("walk_sampled")) as walk:
        yield walk


def _space(key):
    return AddressSpace([CodeMapping(1 << 20, (1 << 20) + 65536, (1 << 20) - TEXT, key)])


def _cfi(number):
    section = Section()
    for function in range(40):
        code = b"".join(advance(8) + cfa_offset(16 + 8 * (number + n)) for n in range(20))
        section.fde(TEXT + 1024 * function, 1000, code)
    return section.cfi()


def test_files_that_no_process_has_had_for_a_window_go(loaded):
    with WalkTables(loaded.maps, WindowCache("/dev/null/windows")) as tables:
        known = {name: _cfi(number) for number, name in enumerate(("gone", "again", "runs"))}
        for number, key in enumerate(known):
            tables.publish(number, 1, _space(key), known.get)
            for _ in tables.files.build(tables.files.missing(key, known[key], TEXT), known[key]):
                pass
        tables.withdraw(0)
        tables.withdraw(1)
        tables.rest()
        assert len(tables.files) == 3, "they were there in the window that is over"
        tables.publish(1, 1, _space("again"), known.get)
        tables.withdraw(1)
        tables.rest()
        assert len(tables.files) == 2
        assert tables.files.evicted == 1
        tables.rest()
        assert len(tables.files) == 1
        assert tables.files.missing("runs", known["runs"], TEXT) is None


def test_a_process_goes_if_its_copy_came_after_its_end(loaded):
    own, gone = os.getpid(), 4_194_304  # above any number of a process
    with ProcessStacks() as stacks, TableFiller(loaded.maps, stacks) as filler:
        stacks.meet(own, time.monotonic_ns())
        for tgid in (own, gone):
            filler.check_identity(tgid, 7)
            filler.publish(tgid, tgid, 7, ())
        filler.exited(gone, time.monotonic_ns())
        filler.check_identity(gone, 7)
        assert filler._processes.keys() == {own, gone}
        filler.rest()
        assert filler._processes.keys() == {own}
        assert list(loaded.maps["procs"].keys()) == [own]


def test_empty_shards_leave_the_map_and_then_memory(loaded, monkeypatch):
    monkeypatch.setattr(pieces, "GRACE_S", -1.0)
    with WordShards(loaded.maps["shards"]) as shards:
        words = SHARD_WORDS - 8
        first, second, third = (shards.take(words) for _ in range(3))
        shards.give_back(first, words)
        shards.give_back(second, words)
        before = _mapped()
        shards.shrink()
        assert _mapped() == before, "a program may still read them"
        assert _published(loaded.maps["shards"]) == [third >> 18]
        shards.shrink()
        assert _mapped() == before - 2
        assert shards.nbytes == 4 * SHARD_WORDS
        assert shards.take(words) >> 18 == 0, "a number is used again"
        shards.write_word(first, 7)
        assert shards.read_word(first) == 7
        shards.give_back(third, words)
        shards.give_back(first, words)
        shards.shrink()
        assert shards.nbytes == 4 * SHARD_WORDS, "one stays"


def _published(shards):
    numbers = []
    for number in range(4):
        with suppress(KeyError), shards[number]:
            numbers.append(number)
    return numbers


def _mapped():
    """Shards that this process has mapped."""
    with open("/proc/self/maps") as maps:
        return sum("bpf-map" in line for line in maps)


def test_open_files_keep_no_section_headers():
    library = next(m for m in parse_maps(proc.maps("self") or "") if "/libc.so" in m.file.path)
    with CodeFiles() as files:
        key = files.mapping(library, os.getpid()).file
        cfi = files.find(key)
        image = files._files[key].image
        assert "sections" not in vars(image), "most files are never asked for rules"
        block = cfi.window(cfi.first_window + 3)
        assert "sections" in vars(image)
        files.rest({key})
        assert "sections" in vars(image), "something is being built of it"
        files.rest()
        assert "sections" not in vars(image)
        assert list(cfi.window(cfi.first_window + 3)) == list(block)


def test_entries_of_a_file_that_is_published_whole_go(loaded):
    with WalkTables(loaded.maps, WindowCache("/dev/null/windows")) as tables:
        cfi = _cfi(1)
        tables.publish(1, 1, _space("small"), {"small": cfi}.get)
        for _ in tables.files.build(tables.files.missing("small", cfi, TEXT), cfi):
            pass
        assert cfi._index is None
        assert cfi.row(TEXT + 8) is not None, "they are read again when they are asked for"
