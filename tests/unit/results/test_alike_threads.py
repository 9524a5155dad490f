"""Alike threads of a process are one column of a page."""

from __future__ import annotations

from purebpf.results import Labels, Profile
from purebpf.results.shape.alike_threads import group_threads
from purebpf.results.shape.page_data import pack
from purebpf.symbols.frame import Address, Frame

START, INNER, RUN, WORKER, HANDLE = range(5)
POOL = (START, INNER, RUN, WORKER)


def test_workers_of_a_pool_are_alike_whatever_they_do_at_the_moment() -> None:
    names = {(5, tid): "python3" for tid in (6, 7, 8, 9)}
    stacks = [
        ((5, 6), (*POOL, 11, 12)),
        ((5, 7), POOL),
        ((5, 8), (*POOL, 13)),
        ((5, 9), (START, INNER, RUN, HANDLE)),
    ]
    grouped = group_threads(names, stacks)
    assert grouped[5, 6] == grouped[5, 7] == grouped[5, 8] == ("python3", 3)
    assert grouped[5, 9] == ("python3", 1)


def test_names_may_differ_in_a_number_at_the_end() -> None:
    names = {(5, 6): "http-worker-1", (5, 7): "http-worker-22", (5, 8): "gc-1"}
    grouped = group_threads(names, [(thread, POOL) for thread in names])
    assert grouped == {
        (5, 6): ("http-worker", 2),
        (5, 7): ("http-worker", 2),
        (5, 8): ("gc-1", 1),
    }


def test_threads_of_two_processes_and_with_other_beginnings_are_not_alike() -> None:
    names = {(5, 6): "app", (7, 8): "app", (5, 9): "app"}
    stacks = [((5, 6), POOL), ((7, 8), POOL), ((5, 9), (START, HANDLE)), ((5, 9), (START, RUN))]
    assert {count for _, count in group_threads(names, stacks).values()} == {1}


def test_a_page_of_waits_has_one_column_for_nine_workers() -> None:
    stack = tuple(
        Frame(name, 0, "/srv/app", Address(at), "user")
        for at, name in enumerate(("wait", "next_job", "work", "start"))
    )
    profile = Profile(unit="ns")
    for tid in range(6, 15):
        profile.add(stack, (), 10, Labels("app", 5, tid))
    profile.add(stack[:1], (), 10, Labels("app", 5, 5))
    names = [name for name in pack(profile).head["functions"]["name"] if "app (" in name]
    assert sorted(names) == ["app (5)", "app (9 threads)"]


def test_threads_without_a_common_start_stay_apart() -> None:
    names = {(7, 8): "worker-1", (7, 9): "worker-2", (7, 10): "worker-3"}
    grouped = group_threads(names, [((7, 10), [1, 2]), ((7, 10), [3])])
    assert grouped == {thread: (name, 1) for thread, name in names.items()}
