"""Mappings over time: snapshots, and records in the order in which the kernel writes them."""

from __future__ import annotations

import pytest

from purebpf.symbols.address_spaces import AddressSpaces, code_of
from purebpf.wire.perf_records import Comm, Exit, Fork, Lost, Mmap, Mmap2


def _mmap(pid: int, start: int, end: int, path: str, *, prot: int = 5, time: int = 0) -> Mmap2:
    return Mmap2(pid, pid, start, end - start, 0x100, path, 8, 1, 42, b"", prot, 2, time)


def _line(start: int, end: int, path: str) -> str:
    return f"{start:x}-{end:x} r-xp 00000100 08:01 42 {path}\n"


def _path(spaces: AddressSpaces, pid: int, address: int, comm: str | None = None) -> str | None:
    found = spaces.find(pid, address, comm)
    return found.file.path if found else None


def test_a_snapshot_answers_for_its_mappings():
    spaces = AddressSpaces()
    spaces.snapshot(7, _line(0x1000, 0x2000, "/bin/a") + _line(0x3000, 0x4000, "/lib/b"), "a")
    assert [_path(spaces, 7, at) for at in (0xFFF, 0x1000, 0x1FFF, 0x2000, 0x3000)] == [
        None, "/bin/a", "/bin/a", None, "/lib/b",
    ]  # fmt: skip
    found = spaces.find(7, 0x1234)
    assert (found.start, found.end, found.offset) == (0x1000, 0x2000, 0x100)
    assert (found.file.major, found.file.minor, found.file.inode) == (8, 1, 42)
    assert spaces.find(8, 0x1234) is None
    assert (spaces.knows(7), spaces.knows(8)) == (True, False)


def test_a_new_mapping_hides_an_older_one_where_it_is():
    spaces = AddressSpaces()
    spaces.feed(_mmap(7, 0x1000, 0x3000, "/lib/old"))
    spaces.feed(_mmap(7, 0x1800, 0x2000, "/lib/new"))
    assert [_path(spaces, 7, at) for at in (0x17FF, 0x1800, 0x1FFF, 0x2000)] == [
        "/lib/old", "/lib/new", "/lib/new", "/lib/old",
    ]  # fmt: skip


def test_data_and_the_kernel_s_own_mappings_are_not_code():
    spaces = AddressSpaces()
    spaces.feed(_mmap(7, 0x1000, 0x2000, "/lib/a", prot=3))
    spaces.feed(Mmap(7, 7, 0x3000, 0x1000, 0, "/lib/b", is_data=True))
    spaces.feed(Mmap(7, 7, 0x5000, 0x1000, 0, "/lib/c", is_data=False))
    spaces.feed(_mmap(0xFFFFFFFF, 0x7000, 0x8000, "[kernel.kallsyms]_text"))
    spaces.feed(Lost(1, 2))
    assert [_path(spaces, 7, at) for at in (0x1000, 0x3000, 0x5000)] == [None, None, "/lib/c"]
    assert not spaces.knows(0xFFFFFFFF)


def test_a_build_id_comes_instead_of_an_inode():
    spaces = AddressSpaces()
    record = _mmap(7, 0x1000, 0x2000, "/lib/a")._replace(maj=0, min=0, ino=0, build_id=b"\x01\xab")
    spaces.feed(record)
    assert spaces.find(7, 0x1000).file.build_id == "01ab"


def test_after_exec_the_old_program_answers_for_what_only_it_mapped():
    spaces = AddressSpaces()
    spaces.feed(Comm(7, 7, "sh", exec=True))
    spaces.feed(_mmap(7, 0x1000, 0x2000, "/bin/sh"))
    spaces.feed(_mmap(7, 0x5000, 0x6000, "/lib/of-sh"))
    spaces.feed(Comm(7, 7, "ls", exec=True))
    spaces.feed(_mmap(7, 0x1000, 0x2000, "/bin/ls"))
    assert _path(spaces, 7, 0x1000) == "/bin/ls"
    assert _path(spaces, 7, 0x1000, "ls") == "/bin/ls"
    assert _path(spaces, 7, 0x1000, "sh") == "/bin/sh"
    assert _path(spaces, 7, 0x5000, "ls") == "/lib/of-sh"
    assert _path(spaces, 7, 0x1000, "never") == "/bin/ls"


def test_the_name_of_a_thread_belongs_to_the_program_that_runs_then():
    spaces = AddressSpaces()
    spaces.feed(Comm(7, 7, "server", exec=True))
    spaces.feed(_mmap(7, 0x1000, 0x2000, "/bin/server"))
    spaces.feed(Comm(7, 9, "worker", exec=False))
    spaces.feed(Comm(7, 7, "other", exec=True))
    spaces.feed(_mmap(7, 0x1000, 0x2000, "/bin/other"))
    assert _path(spaces, 7, 0x1000, "worker") == "/bin/server"


def test_a_child_starts_with_its_parent_s_mappings_and_then_they_part():
    spaces = AddressSpaces()
    spaces.feed(Comm(7, 7, "sh", exec=True))
    spaces.feed(_mmap(7, 0x1000, 0x2000, "/bin/sh"))
    spaces.feed(Fork(8, 7, 8, 7))
    spaces.feed(_mmap(7, 0x3000, 0x4000, "/lib/parent"))
    spaces.feed(_mmap(8, 0x3000, 0x4000, "/lib/child"))
    assert _path(spaces, 8, 0x1000, "sh") == "/bin/sh"
    assert _path(spaces, 7, 0x3000) == "/lib/parent"
    assert _path(spaces, 8, 0x3000) == "/lib/child"
    assert (spaces.parent(8), spaces.parent(7)) == (7, 0)


def test_a_thread_is_not_a_process():
    spaces = AddressSpaces()
    spaces.feed(_mmap(7, 0x1000, 0x2000, "/bin/a"))
    spaces.feed(Fork(7, 7, 8, 7))
    spaces.feed(Exit(7, 7, 8, 7))
    assert not spaces.has_exited(7)
    assert not spaces.knows(8)


def test_a_process_that_exited_is_remembered_until_its_number_is_used_again():
    spaces = AddressSpaces()
    spaces.feed(Comm(7, 7, "first", exec=True))
    spaces.feed(_mmap(7, 0x1000, 0x2000, "/bin/first"))
    spaces.feed(Exit(7, 1, 7, 1))
    assert spaces.has_exited(7)
    assert _path(spaces, 7, 0x1000) == "/bin/first"
    spaces.feed(Fork(7, 1, 7, 1))
    assert not spaces.has_exited(7)
    spaces.feed(Comm(7, 7, "second", exec=True))
    spaces.feed(_mmap(7, 0x1000, 0x2000, "/bin/second"))
    assert _path(spaces, 7, 0x1000) == "/bin/second"
    assert _path(spaces, 7, 0x1000, "first") == "/bin/first"


def test_only_so_many_exited_processes_are_kept_and_the_others_counted():
    spaces = AddressSpaces(keep_exited=3)
    for pid in range(10, 20):
        spaces.feed(_mmap(pid, 0x1000, 0x2000, "/bin/a"))
        spaces.feed(Exit(pid, 1, pid, 1))
    assert spaces.forgotten == 7
    assert [pid for pid in range(10, 20) if spaces.knows(pid)] == [17, 18, 19]


def test_records_older_than_a_snapshot_say_nothing_new():
    spaces = AddressSpaces()
    spaces.snapshot(7, _line(0x1000, 0x2000, "/bin/now"), "now", time=100)
    spaces.feed(Fork(7, 1, 7, 1, 80))
    spaces.feed(Comm(7, 7, "before", exec=True, time=90))
    spaces.feed(_mmap(7, 0x1000, 0x2000, "/bin/before", time=95))
    spaces.feed(Exit(7, 1, 7, 1, 70))
    assert _path(spaces, 7, 0x1000) == "/bin/now"
    assert not spaces.has_exited(7)
    spaces.feed(_mmap(7, 0x1000, 0x2000, "/bin/later", time=110))
    assert _path(spaces, 7, 0x1000) == "/bin/later"


def test_a_second_snapshot_adds_what_is_new_and_keeps_what_was_unmapped():
    spaces = AddressSpaces()
    spaces.snapshot(7, _line(0x1000, 0x2000, "/bin/a") + _line(0x3000, 0x4000, "/lib/gone"))
    version = spaces.version(7)
    spaces.snapshot(7, _line(0x1000, 0x2000, "/bin/a"))
    assert spaces.version(7) == version
    spaces.snapshot(7, _line(0x1000, 0x2000, "/bin/a") + _line(0x5000, 0x6000, "/lib/new"))
    assert spaces.version(7) != version
    assert [_path(spaces, 7, at) for at in (0x1000, 0x3000, 0x5000)] == [
        "/bin/a", "/lib/gone", "/lib/new",
    ]  # fmt: skip


def test_a_snapshot_with_nothing_in_common_is_another_program():
    spaces = AddressSpaces()
    spaces.snapshot(7, _line(0x1000, 0x2000, "/bin/sh"), "sh")
    spaces.snapshot(7, _line(0x1000, 0x2000, "/bin/ls"), "ls")
    assert _path(spaces, 7, 0x1000, "sh") == "/bin/sh"
    assert _path(spaces, 7, 0x1000, "ls") == "/bin/ls"


@pytest.mark.parametrize(
    "record",
    [
        _mmap(7, 0x8000, 0x9000, "/lib/x"),
        Comm(7, 7, "new", exec=False),
        Comm(7, 7, "new", exec=True),
        Fork(7, 1, 7, 1),
    ],
    ids=lambda record: type(record).__name__,
)
def test_the_version_changes_with_every_record_that_may_change_an_answer(record):
    spaces = AddressSpaces()
    spaces.snapshot(7, _line(0x1000, 0x2000, "/bin/a"))
    version = spaces.version(7)
    spaces.feed(record)
    assert spaces.version(7) != version


def test_a_program_that_maps_without_end_does_not_fill_memory():
    spaces = AddressSpaces()
    for at in range(70_000):
        spaces.feed(_mmap(7, 0x1000 * at, 0x1000 * (at + 1), ""))
    assert spaces.find(7, 0x1000 * 69_999) is not None
    assert spaces.find(7, 0x1000 * 40_000) is not None
    assert spaces.find(7, 0x1000) is None


def test_the_successor_of_a_forgotten_process_has_another_version():
    spaces = AddressSpaces(keep_exited=1)
    versions = []
    for pid in (7, 8, 7):
        spaces.feed(Fork(pid, 1, pid, 1))
        spaces.feed(_mmap(pid, 0x1000, 0x2000, "/bin/a"))
        versions.append(spaces.version(pid))
        spaces.feed(Exit(pid, 1, pid, 1))
    assert spaces.forgotten == 2
    assert versions[2] != versions[0]


def test_a_mapping_ends_where_addresses_do():
    spaces = AddressSpaces()
    spaces.feed(_mmap(1, (1 << 64) - 4096, (1 << 64) + 4096, "/lib/far"))
    assert _path(spaces, 1, (1 << 64) - 2) == "/lib/far"


def test_records_are_dispatched_by_type_not_by_the_name_of_their_class():
    spaces = AddressSpaces()
    namesake = type("Mmap2", (), _mmap(7, 0x1000, 0x3000, "/lib/a")._asdict())
    spaces.feed(namesake())
    assert not spaces.knows(7)
    spaces.feed(_mmap(7, 0x1000, 0x3000, "/lib/a"))
    assert spaces.knows(7)


def test_what_was_mapped_earlier_is_said_with_how_long_it_was():
    spaces = AddressSpaces()
    assert spaces.earlier(7, 10) is None
    spaces.snapshot(7, _line(0x1000, 0x3000, "/bin/a"), "a", time=5)
    spaces.feed(_mmap(7, 0x1800, 0x2000, "/lib/new", time=6))
    spaces.feed(Fork(8, 7, 8, 7, time=20))
    spaces.feed(Comm(8, 8, "b", exec=True, time=30))
    spaces.feed(_mmap(8, 0x5000, 0x6000, "/bin/b", time=31))
    spaces.feed(Exit(8, 7, 8, 7, time=40))
    mappings, since, until = spaces.earlier(7, 10)
    assert (since, until > 1 << 60) == (0, True)
    assert [(m.start, m.end, m.offset, m.file.path) for m in mappings] == [
        (0x1000, 0x1800, 0x100, "/bin/a"),
        (0x1800, 0x2000, 0x100, "/lib/new"),
        (0x2000, 0x3000, 0x1100, "/bin/a"),
    ]
    assert spaces.earlier(8, 19) is None
    assert spaces.earlier(8, 25) == (mappings, 20, 30)
    assert spaces.earlier(8, 35)[0][0].file.path == "/bin/b"


def test_the_mapping_in_a_record_of_code():
    assert code_of(_mmap(7, 0x1000, 0x2000, "/lib/a", prot=1)) is None
    assert code_of(_mmap(7, 0x1000, 0x2000, "/lib/a")).file.inode == 42


def test_processes_that_came_and_went_unseen_are_forgotten():
    spaces = AddressSpaces()
    spaces.snapshot(7, _line(0x1000, 0x3000, "/bin/a"), "a", time=5)
    for pid in (8, 9, 10):
        spaces.feed(Fork(pid, 7, pid, 7, time=pid))
    spaces.feed(Fork(11, 10, 11, 10, time=20))
    for pid in (8, 9, 10):
        spaces.feed(Exit(pid, 7, pid, 7, time=30))
    assert spaces.forget_exited({9}) == []
    assert _path(spaces, 8, 0x1000) == "/bin/a"  # for what was not counted by then
    assert spaces.forget_exited({9}) == [8]
    assert [spaces.knows(pid) for pid in (7, 8, 9, 10, 11)] == [True, False, True, True, True]
    spaces.feed(Exit(11, 10, 11, 10, time=40))
    assert [sorted(spaces.forget_exited({9})) for _ in range(3)] == [[], [10, 11], []]
    assert spaces.forgotten == 0


def test_a_process_that_has_the_number_of_one_that_left_stays_as_long_as_others():
    spaces = AddressSpaces()
    spaces.snapshot(8, _line(0x1000, 0x3000, "/bin/a"), "a", time=5)
    spaces.feed(Exit(8, 7, 8, 7, time=30))
    assert spaces.forget_exited(()) == []
    spaces.feed(Fork(8, 7, 8, 7, time=40))
    assert spaces.forget_exited(()) == []
    spaces.feed(Exit(8, 7, 8, 7, time=50))
    assert [spaces.forget_exited(()) for _ in range(2)] == [[], [8]]


def test_a_chain_of_processes_that_each_forked_the_next_does_not_grow():
    """Each shell starts its successor and exits: the nearest four stay."""
    spaces = AddressSpaces()
    spaces.snapshot(1, _line(0x1000, 0x3000, "/bin/a"), "a", time=1)
    for pid in range(2, 40):
        spaces.feed(Fork(pid, pid - 1, pid, pid - 1, time=10 * pid))
        spaces.feed(Exit(pid - 1, 1, pid - 1, 1, time=10 * pid + 5))
        spaces.forget_exited(())
    assert {*spaces.processes} <= {39, 38, 37, 36, 35, 34}
    assert _path(spaces, 39, 0x1000) == "/bin/a"


def test_files_that_no_process_has_are_forgotten_and_others_stay():
    spaces = AddressSpaces()
    spaces.snapshot(1, _line(0x1000, 0x3000, "/bin/a"), "a", time=1)
    for pid in range(2, 5000):
        spaces.snapshot(pid, _line(0x1000, 0x3000, f"/tmp/{pid}"), "b", time=pid)
        spaces.feed(Exit(pid, 1, pid, 1, time=pid + 1))
    spaces.forget_exited(())
    spaces.forget_exited(())
    assert len(spaces._numbers) == 1
    spaces.snapshot(6000, _line(0x1000, 0x3000, "/bin/c"), "c", time=6000)
    assert _path(spaces, 6000, 0x1000) == "/bin/c"
    assert _path(spaces, 1, 0x1000) == "/bin/a"
    assert len(spaces._files) < 5000


def test_where_records_were_lost_those_without_a_process_have_exited():
    spaces = AddressSpaces()
    for pid in (7, 8):
        spaces.snapshot(pid, _line(0x1000, 0x3000, "/bin/a"), "a", time=5)
    spaces.note_living({8})
    assert [spaces.has_exited(pid) for pid in (7, 8)] == [True, False]
    spaces.forget_exited(())
    assert spaces.forget_exited(()) == [7]


def _plugin(start: int, path: str, time: int, inode: int, *, offset: int = 0x100) -> Mmap2:
    return Mmap2(7, 7, start, 0x1000, offset, path, 8, 1, inode, b"", 5, 2, time)


def test_an_address_that_showed_two_files_is_contested():
    spaces = AddressSpaces()
    spaces.feed(_plugin(0x1000, "/lib/old", 10, 1))
    spaces.feed(_plugin(0x1800, "/lib/new", 20, 2))
    spaces.feed(_plugin(0x5000, "/lib/new", 20, 2))
    places = (0x1000, 0x17FF, 0x1800, 0x1FFF, 0x2000, 0x5000)
    assert [spaces.is_contested(7, at) for at in places] == [False, False, True, True, False, False]
    assert not spaces.is_contested(8, 0x1800)
    assert spaces.span(7, 0x1000) == (0x1000, 0x1800)
    assert spaces.span(7, 0x2000) == (0x2000, 0x2800)
    version = spaces.version(7)
    spaces.begin(21)  # another window: only the new file was there
    assert not spaces.is_contested(7, 0x1800)
    assert spaces.version(7) != version


def test_a_process_with_a_contested_address_is_forgotten_once_it_has_exited():
    spaces = AddressSpaces()
    spaces.feed(_plugin(0x1000, "/lib/old", 10, 1))
    spaces.feed(_plugin(0x1800, "/lib/new", 20, 2))
    assert spaces.is_contested(7, 0x1800)
    spaces.feed(Exit(7, 1, 7, 1))
    gone = []
    for since in (21, 22, 23):
        spaces.begin(since)
        gone += spaces.forget_exited(())
    assert gone == [7]


@pytest.mark.parametrize(
    "other",
    [
        _plugin(0x1000, "/lib/a", 20, 1),  # loaded again
        _plugin(0x1800, "/lib/a", 20, 1, offset=0x900),  # a part of it, protected anew
        _plugin(0x1000, "/lib/a (deleted)", 20, 1),
        _plugin(0x1000, "/lib/a", 20, 0),  # as a record with a build id has it
        _plugin(0x1000, "//anon", 20, 0),  # its copy in huge pages
    ],
)
def test_the_same_code_is_not_contested(other: Mmap2):
    spaces = AddressSpaces()
    spaces.feed(_plugin(0x1000, "/lib/a", 10, 1))
    assert not spaces.replaces(other)
    spaces.feed(other)
    assert not spaces.is_contested(7, 0x1900)


@pytest.mark.parametrize(
    "other",
    [
        _plugin(0x1000, "/lib/a", 20, 2),  # another file of that name
        _plugin(0x1000, "/lib/a", 20, 1, offset=0x2100),
        _plugin(0x1000, "/lib/b", 20, 0),
    ],
)
def test_other_code_is_contested_also_after_a_fork(other: Mmap2):
    spaces = AddressSpaces()
    spaces.feed(_plugin(0x1000, "/lib/a", 10, 1))
    assert spaces.replaces(other)
    spaces.feed(other)
    assert spaces.is_contested(7, 0x1900)
    spaces.feed(Fork(9, 7, 9, 7, 30))
    assert not spaces.is_contested(9, 0x1900)  # it began with the new code
    spaces.feed(Comm(7, 7, "next", exec=True, time=40))
    spaces.feed(_plugin(0x1000, "/bin/next", 50, 5))
    assert not spaces.is_contested(7, 0x1900, "next")


def test_mappings_that_were_kept_aside_stay_as_they_were():
    spaces = AddressSpaces()
    spaces.feed(_plugin(0x1000, "/lib/a", 10, 1))
    aside = spaces.keep_aside(7)
    spaces.feed(_plugin(0x1000, "/lib/b", 20, 2))
    spaces.settle(7)
    assert [_path(spaces, number, 0x1000) for number in (aside, 7)] == ["/lib/a", "/lib/b"]
    assert not spaces.is_contested(aside, 0x1000)
    assert not spaces.is_contested(7, 0x1000)
    spaces.feed(_plugin(0x1000, "/lib/a", 30, 1))
    assert spaces.is_contested(7, 0x1000)


def _executed(spaces: AddressSpaces, comm: str, path: str, time: int, inode: int) -> None:
    spaces.feed(Comm(7, 7, comm, exec=True, time=time))
    spaces.feed(_plugin(0x1000, path, time, inode))


def test_programs_of_one_name_at_the_same_addresses_are_contested():
    spaces = AddressSpaces()
    _executed(spaces, "app", "/v1/app", 10, 1)
    _executed(spaces, "other", "/bin/other", 15, 3)
    spaces.feed(Comm(7, 7, "app", exec=True, time=20))
    spaces.feed(_plugin(0x1800, "/v2/app", 20, 2))
    places = (0x1000, 0x1800, 0x2000)
    assert [spaces.is_contested(7, at, "app") for at in places] == [False, True, False]
    assert not spaces.is_contested(7, 0x1000, "other")
    assert spaces.is_contested(7, 0x1800)
    assert spaces.span(7, 0x2100, "app") == (0x2000, 0x2800)
    spaces.begin(16)  # the first program had ended
    assert not spaces.is_contested(7, 0x1800, "app")


def test_the_same_program_again_is_not_contested():
    spaces = AddressSpaces()
    _executed(spaces, "app", "/bin/app", 10, 1)
    _executed(spaces, "app", "/bin/app", 20, 1)
    assert not spaces.is_contested(7, 0x1000, "app")
    aside = spaces.keep_aside(7)
    _executed(spaces, "app", "/v2/app", 30, 2)
    spaces.settle(7)
    assert not spaces.is_contested(7, 0x1000, "app")
    assert not spaces.is_contested(aside, 0x1000, "app")
    _executed(spaces, "app", "/v3/app", 40, 3)
    assert spaces.is_contested(7, 0x1000, "app")
