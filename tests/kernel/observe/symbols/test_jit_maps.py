"""Which file counts as a process's perf map, and how much of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from purebpf.observe.symbols.jit_maps import JitMaps, owners
from purebpf.symbols.budget import Budget
from purebpf.symbols.frame import Reason
from purebpf.syscall import proc

pytestmark = pytest.mark.any_kernel
GONE = 4_194_304 + os.getpid()  # more than any pid (PID_MAX_LIMIT)


@pytest.fixture
def perf_map():
    path = Path(f"/tmp/perf-{GONE}.map")
    yield path
    path.unlink(missing_ok=True)


def test_the_map_of_a_process_that_has_exited(perf_map):
    perf_map.write_text("100 10 main\n")
    maps = JitMaps()
    assert maps.read(GONE, lives=False).find(0x100) == ("main", 0)
    assert maps.refused == {}


def test_a_map_that_is_a_link_a_directory_or_a_pipe_is_none(perf_map, tmp_path):
    real = tmp_path / "map"
    real.write_text("100 10 main\n")
    for make in (lambda: perf_map.symlink_to(real), lambda: os.mkfifo(perf_map)):
        make()
        assert JitMaps().read(GONE, lives=False) is None
        perf_map.unlink()
    perf_map.mkdir()
    assert JitMaps().read(GONE, lives=False) is None
    perf_map.rmdir()


def test_of_a_map_that_grew_for_weeks_the_last_lines_count(perf_map, monkeypatch):
    monkeypatch.setattr("purebpf.observe.symbols.jit_maps._MAX_SIZE", 20)
    perf_map.write_text("f00100 10 old\n100 10 newer\n200 10 new\n")
    table = JitMaps().read(GONE, lives=False)
    assert [table.find(at) for at in (0x100, 0x200)] == [None, ("new", 0)]
    assert len(table) == 1


@pytest.mark.needs("chown")
def test_who_may_own_it(perf_map):
    perf_map.write_text("100 10 main\n")
    os.chown(perf_map, 65534, 65534)
    maps = JitMaps()
    assert maps.read(GONE, lives=False) is None
    assert maps.refused == {GONE: Reason.UNTRUSTED_PERF_MAP}
    os.chown(perf_map, 0, 0)
    assert maps.read(GONE, lives=False) is not None
    assert maps.refused == {}


def test_a_map_from_before_the_process_is_not_its_own():
    pid = os.getpid()
    born = proc.start_time(pid)
    perf_map = Path(f"/tmp/perf-{pid}.map")
    perf_map.write_text("100 10 main\n")
    try:
        maps = JitMaps()
        assert maps.read(pid).find(0x100) == ("main", 0)
        assert maps.refused == {}
        os.utime(perf_map, (born - 60, born - 60))
        assert maps.read(pid) is None  # nor is what was read before, when another had the number
        assert maps.refused == {pid: Reason.STALE_PERF_MAP}
        assert maps.read(pid, lives=False) is not None  # who knows when that one began
        with perf_map.open("a") as file:
            file.write("200 10 later\n")
        assert maps.read(pid).find(0x200) == ("later", 0)
        assert maps.refused == {}
    finally:
        perf_map.unlink()


def test_a_map_may_be_owned_by_root_and_the_process_s_user():
    assert owners(os.getpid()) == {0, os.getuid()}
    assert owners(GONE) == owners(0) == {0, os.geteuid()}


def test_only_what_was_appended_is_read(perf_map):
    spent = []
    budget = Budget()
    budget.spend = lambda nbytes=0: spent.append(nbytes)
    maps = JitMaps(budget)
    perf_map.write_text("".join(f"{at:x} 10 f{at}\n" for at in range(0, 1 << 18, 16)))
    maps.read(GONE, lives=False)
    assert max(spent) == perf_map.stat().st_size > 1 << 18
    spent.clear()
    with perf_map.open("a") as file:
        file.write("7f0000 10 later\n7f0010 1")
    assert maps.read(GONE, lives=False).find(0x7F0000) == ("later", 0)
    assert sum(spent) < 1 << 13
    with perf_map.open("a") as file:
        file.write("0 whole\n")
    table = maps.read(GONE, lives=False)
    assert [table.find(at) for at in (0x100, 0x7F0010)] == [("f256", 0), ("whole", 0)]


def test_a_map_that_was_written_anew_is_read_anew(perf_map):
    maps = JitMaps()
    perf_map.write_text("100 10 old\n")
    maps.read(GONE, lives=False)
    perf_map.write_text("200 10 longer\n300 10 new\n")  # as jcmd does; the inode is the same
    table = maps.read(GONE, lives=False)
    assert [table.find(at) for at in (0x100, 0x200)] == [None, ("longer", 0)]
    perf_map.unlink()
    perf_map.write_text("200 10 longer\n300 10 new\n400 10 another\n")
    assert maps.read(GONE, lives=False).find(0x400) == ("another", 0)
    perf_map.write_text("500 10 short\n")
    assert maps.read(GONE, lives=False).find(0x400) is None
