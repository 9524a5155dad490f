"""Threads that share the members of a pool of their own, and ones that wait for jobs."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import Activity, Facts, Process, Socket, StackFrame, WakerSum
from purebpf.findings.find import find
from tests.support.builders.facts import facts, native, waiting

EXE = "/srv/thumbd"
THREADS = (11, 12, 13, 14, 15)


def sharing(
    *callers: str, wait: str = "Codecs<Png>::take()", producer: int = 0, held_s: float = 3.0
) -> Facts:
    """Five threads of a service: each waits most of the time, and encodes for a while.

    `producer` is another thread that wakes them; 0: they wake each other.
    """
    stays, wakers = list[Activity](), list[WakerSum]()
    for tid in THREADS:
        stack = (native("pthread_cond_wait"), *(StackFrame(f, EXE) for f in (wait, *callers)))
        stays.append(waiting(7, tid, "futex", *stack, seconds=7.0, times=30))
        work = (native("clock_nanosleep"), StackFrame("Codec::encode()", EXE))
        inside = (*work, *(StackFrame(name, EXE) for name in callers))
        stays.append(waiting(7, tid, "clock_nanosleep", *inside, seconds=held_s, times=30))
        waker = producer or THREADS[(tid - 10) % len(THREADS)]
        wakers.append(WakerSum(tid, "futex", 7, waker, 7.0, 30))
    return facts(*stays, exe=EXE)._replace(
        processes=(Process(7, 1, "thumbd", EXE),),
        sockets=(Socket(51, "tcp", "0.0.0.0", 8000, "", 0, 10),),
        descriptors={7: {3: "socket:[51]"}},
        wakers=tuple(wakers),
    )


def said(measured: Facts) -> str:
    return "; ".join(
        "; ".join((one.text, *one.evidence)) for one in find(measured) if one.kind == "waits"
    )


def test_threads_that_wake_each_other_share_a_pool() -> None:
    text = said(sharing("thumbnail()", "session(int)"))
    assert "5 threads wait for their turn in Codecs::take" in text
    assert "the one whose turn it is sleeps in Codec::encode" in text
    assert "cond" not in text


@pytest.mark.parametrize("held_s", [3.0, 0.0], ids=["in use", "lost"])
def test_a_pool_has_its_name_and_is_asked_by_another_function(held_s: float) -> None:
    text = said(
        sharing("answer(int)", "session(int)", wait="CodecPool::takeCodec()", held_s=held_s)
    )
    assert "5 threads wait for a permit or a free member of a pool in CodecPool::takeCodec" in text


def test_a_turnstile_is_no_worker_also_if_its_callers_are_inlined() -> None:
    text = said(sharing("session(int)", wait="Turnstile::enter()"))
    assert "5 threads wait for their turn in Turnstile::enter" in text


@pytest.mark.parametrize(
    "idle",
    [
        sharing("thumbnail()", "session(int)", producer=40),
        sharing("run()"),
        sharing("thumbnail()", "session(int)", held_s=0.5),
    ],
    ids=["another thread has jobs", "workers whose jobs have jobs", "hardly any work"],
)
def test_takers_of_jobs_are_idle(idle: Facts) -> None:
    assert said(idle) == ""
