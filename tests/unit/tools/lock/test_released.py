"""The functions that let go of a lock, from the stacks of the threads that did."""

from __future__ import annotations

from purebpf.symbols.frame import Address, Frame
from purebpf.tools.lock.released import released_in


def frame(name: str, module: str, kind: str = "user", line: int = 0) -> Frame:
    return Frame(name, 0, module, Address(1), kind, line=line)


UNLOCK = frame("pthread_mutex_unlock", "/usr/lib/x86_64-linux-gnu/libc.so.6")
MAIN = frame("main", "/srv/quoted")


def test_the_holder_is_named_by_its_own_functions() -> None:
    refresh = (UNLOCK, frame("Cache::refresh(int)", "/srv/quoted"), MAIN)
    lookup = (UNLOCK, frame("Cache::lookup(int)", "/srv/quoted"), MAIN)
    assert released_in("mutex", 7, [(refresh, 90), (lookup, 10)]) == ("Cache::refresh [quoted]",)


def test_python_is_named_with_the_line() -> None:
    stack = (
        frame("sem_post", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
        frame("reserve", "/srv/stock.py", "python", 22),
        frame("Thread.run", "/usr/lib/python3.11/threading.py", "python", 975),
    )
    assert released_in("python lock", 7, [(stack, 3)]) == ("reserve (stock.py:22)",)


def test_who_posts_a_semaphore_or_gives_the_gil_away_may_not_be_who_had_it_for_long() -> None:
    assert released_in("semaphore", 7, [((UNLOCK, MAIN), 3)]) == ()
    assert released_in("GIL", 7, [((UNLOCK, MAIN), 3)]) == ()


def test_nothing_is_said_without_a_stack() -> None:
    assert released_in("mutex", 7, []) == ()
    assert released_in("mutex", 7, [((), 5)]) == ()
    unnamed = frame("python3.11!0x4f92c0", "/usr/bin/python3.11")
    assert released_in("mutex", 7, [((unnamed,), 5)]) == ()
