"""Records that no one has asked for yet: kept, read once, or forgotten."""

from __future__ import annotations

from purebpf.observe.processes.unread_records import UnreadRecords
from purebpf.wire.process_runs import Happened


def add(unread: UnreadRecords, *, ended: tuple[int, ...] = (), **runs: list[bytes]) -> list[int]:
    """Runs by process, `p7=[...]`; a piece b"fork 3" says who forked it."""
    happened = Happened.nothing()
    for name, pieces in runs.items():
        pid = int(name[1:])
        happened.runs[pid] = pieces
        happened.forks.extend((pid, int(one[5:])) for one in pieces if one.startswith(b"fork"))
    happened.ended.update(dict.fromkeys(ended))
    return unread.add(happened)


def test_a_process_is_read_once_and_with_those_that_forked_it() -> None:
    unread = UnreadRecords()
    add(unread, p7=[b"fork 3"], p8=[b"fork 7"], p9=[b"other"])
    add(unread, p8=[b"ran"], ended=(8,))
    assert unread.take([8]) == [b"fork 7", b"ran", b"fork 3"]
    assert unread.take([8, 7]) == []
    assert list(unread.pieces) == [9]
    assert not unread.ended
    assert unread.parents == {7: 3, 8: 7}


def test_those_that_ended_are_forgotten_but_those_to_keep() -> None:
    unread = UnreadRecords()
    add(unread, p7=[b"fork 3"], p8=[b"fork 3"], p9=[b"fork 3"], ended=(7, 8))
    assert unread.forget_ended({8}) == [7]
    assert list(unread.pieces) == [8, 9]
    assert unread.parents == {8: 3, 9: 3}


def test_children_of_those_that_ended_are_orphans() -> None:
    unread = UnreadRecords()
    add(unread, p7=[b"fork 3"], p8=[b"fork 7"], p9=[b"fork 4"], p10=[b"fork 5"], ended=(7,))
    assert unread.orphans({4}) == [8, 9]


def test_where_records_were_lost_all_that_do_not_live_have_ended() -> None:
    unread = UnreadRecords()
    add(unread, p7=[b"a"], p8=[b"b"])
    unread.note_living({8})
    assert list(unread.ended) == [7]


def test_not_more_than_eight_thousand_that_ended_are_kept() -> None:
    unread = UnreadRecords()
    for pid in range(1, 8195):
        add(unread, ended=(pid,), **{f"p{pid}": [b"a"]})
    assert unread.forgotten == 2
    assert min(unread.pieces) == 3
    assert len(unread.pieces) == len(unread.ended) == 8192


def test_who_goes_on_and_on_is_to_be_read() -> None:
    unread = UnreadRecords()
    large = [add(unread, p7=[b"a"], p8=[b"b"] if number == 3 else []) for number in range(66)]
    assert [number for number, pids in enumerate(large) if pids] == [64, 65]
    assert large[64] == [7]
