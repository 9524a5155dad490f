"""When processes with anonymous code are looked at again."""

from __future__ import annotations

import pytest

from purebpf.errors import KernelError
from purebpf.observe.processes import copied_code
from purebpf.observe.processes.copied_code import CopiedCode
from purebpf.observe.symbols.copied_text import Copies

MS = 1_000_000


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes whose mappings were read, each in 10 ms."""
    pids: list[int] = []

    def read_maps(pid: int, _: object) -> str:
        pids.append(pid)
        return ""

    monkeypatch.setattr(copied_code, "read_maps", read_maps)
    return pids


@pytest.fixture
def took(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time after the next look."""
    times = [0]
    monkeypatch.setattr(copied_code.host_clock, "monotonic_ns", lambda: times[0])
    return times


def look(copied: CopiedCode, now_ns: int) -> None:
    assert [*copied.look(now_ns)] == []


def test_one_process_at_a_time_and_with_pauses(looked: list[int], took: list[int]) -> None:
    copied = CopiedCode()
    for pid in (7, 8):
        copied.note(pid, 0)
    look(copied, 19 * MS)
    assert looked == []
    took[0] = 30 * MS
    look(copied, 20 * MS)
    assert looked == [7]
    assert copied.next_s(30 * MS) == pytest.approx(0.19)
    look(copied, 219 * MS)
    assert looked == [7]
    took[0] = 221 * MS
    look(copied, 220 * MS)
    assert looked == [7, 8]
    assert copied.next_s(221 * MS) > 1000


def test_waits_become_longer_and_stay_so_for_a_process_that_found_no_room(
    looked: list[int], took: list[int]
) -> None:
    copied = CopiedCode()
    now_ns, waits = 0, []
    for _ in range(5):
        copied.note(7, now_ns)
        took[0] = now_ns
        waits.append(copied.next_s(now_ns))
        now_ns += int(waits[-1] * 1e9)
        took[0] = now_ns
        look(copied, now_ns)
    assert looked == [7] * 5
    assert waits == pytest.approx([0.02, 0.04, 0.08, 0.16, 0.32])
    for pid in range(100, 1124):
        copied.note(pid, now_ns)
    copied.note(7, now_ns)
    assert copied._looks[7].at_ns >= now_ns + 640 * MS


def test_what_was_not_compared_is_counted_once_a_process() -> None:
    copied = CopiedCode()
    for _ in range(3):
        copied.note_copies(7, Copies([], is_sure=False, is_cut=True), 0)
    copied.note_copies(8, Copies([], is_sure=True), 0)
    assert copied.lost == 1
    assert copied.next_s(0) == pytest.approx(0.02)


def test_a_process_of_another_user_is_not_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read_maps(_: int, __: object) -> str:
        raise KernelError("open", 13, "it is another user's")

    monkeypatch.setattr(copied_code, "read_maps", read_maps)
    copied = CopiedCode()
    copied.note(7, 0)
    look(copied, 20 * MS)
    assert copied.next_s(20 * MS) > 1000
