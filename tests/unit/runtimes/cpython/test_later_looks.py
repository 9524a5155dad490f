"""A process that has just started is looked at soon, then less and less often, then no more."""

from __future__ import annotations

from itertools import pairwise

from purebpf.observe.runtimes.cpython.later_looks import LaterLooks


def test_looks_come_soon_then_seldom_and_end() -> None:
    now = 100.0
    looks = LaterLooks(lambda: now)
    assert looks.next_s() == 5.0
    looks.add(7, 70, 9)
    taken = []
    while (wait := looks.next_s()) and now < 110:
        now += wait
        for due in looks.due():
            assert due == (7, 70, 9)
            taken.append(now - 100)
            looks.add(*due)
    assert taken[0] < 0.01
    assert 10 < len(taken) < 30
    assert 3 < taken[-1] < 10
    assert all(after > before for before, after in pairwise(taken))


def test_what_was_dropped_is_not_due() -> None:
    now = 0.0
    looks = LaterLooks(lambda: now)
    looks.add(7, 7, 0)
    looks.add(8, 8, 0)
    looks.drop(7)
    looks.drop(9)
    now = 1.0
    assert looks.due() == [(8, 8, 0)]


def test_samples_of_a_busy_process_are_seldom_a_reason_to_look() -> None:
    now, looked = 0.0, 0
    looks = LaterLooks(lambda: now)
    for sample in range(20_000):  # in two seconds
        now = sample / 10_000
        if looks.may_look(7):
            looked += 1
            looks.add(7, 7, 0)
        if now == 0.25:
            looked = 0  # before, the process may end soon
    assert 10 < looked < 80
    looks.drop(7)
    assert looks.may_look(7)
    looks.add(7, 7, 0)
    assert looks.may_look(7)
