"""Programs that try again and again, and the sleeps in between."""

from __future__ import annotations

import errno

import pytest

from purebpf.findings.facts import CallCount, Connect, Facts, PathCount, Process, WaitSum
from purebpf.findings.facts import Endpoint as End
from purebpf.findings.find import find
from purebpf.findings.finding import Finding
from tests.support.builders.facts import PYTHON, facts, library, own, waiting

LOCK = "/run/stock.lock"
CELERY = library("trace_task", "/v/lib/python3.11/site-packages/celery/app/trace.py")


def trying(
    call: str, error: int, *, times: int = 400, sleeps: int = 400, paths: int = 1, good: int = 0
) -> Facts:
    """A program that sleeps after each attempt to open or lock a file."""
    sleep = waiting(7, 7, "clock_nanosleep", own("take_lock", 6), own("count", 12))
    slept = WaitSum(7, 7, "clock_nanosleep", 0, -1, 0, End(), 9.0, sleeps, 0.03)
    counts = [CallCount(7, call, error, times, fd=5), CallCount(7, "clock_nanosleep", 0, sleeps)]
    if good:
        counts.append(CallCount(7, call, 0, good))
    return facts(sleep)._replace(
        waits=(slept,),
        calls=tuple(counts),
        paths=tuple(PathCount(7, call, f"{LOCK}{n or ''}", times // paths) for n in range(paths)),
        descriptors={7: {0: "/dev/null", 5: LOCK, 6: "/srv/log"}, 9: {0: "/dev/null", 4: LOCK}},
        processes=(Process(7, 1, "stock", PYTHON), Process(9, 1, "holder", "/srv/holder")),
    )


def found(measured: Facts, kind: str = "retries") -> list[Finding]:
    return [one for one in find(measured) if one.kind == kind]


def test_a_lock_file_that_exists() -> None:
    (finding,) = found(trying("openat", errno.EEXIST))
    assert finding.text.startswith(
        f"tries to create {LOCK} again and again in take_lock (app.py:6): openat fails 40 times a "
        "second, as it exists (EEXIST)"
    )
    assert finding.evidence[1] == "it is open in holder (9)"
    assert finding.cost == pytest.approx(0.9)
    assert {one.kind for one in find(trying("openat", errno.EEXIST))} == {"retries"}


def test_a_lock_that_is_asked_for_without_waiting() -> None:
    (finding,) = found(trying("flock", errno.EAGAIN)._replace(paths=()))
    assert f"tries to lock {LOCK} again and again" in finding.text


def test_a_lock_of_a_file_that_cannot_be_told() -> None:
    measured = trying("flock", errno.EAGAIN)
    (finding,) = found(measured._replace(descriptors={7: {5: LOCK}}))
    assert finding.text.startswith("tries to lock a file again and again in take_lock")


def test_a_file_that_does_not_come() -> None:
    (finding,) = found(trying("newfstatat", errno.ENOENT))
    assert f"looks for {LOCK} again and again" in finding.text


@pytest.mark.parametrize(
    "well",
    [
        trying("openat", errno.ENOENT, sleeps=10),
        trying("openat", errno.ENOENT, paths=8),
        trying("openat", errno.EEXIST, times=20, sleeps=20),
        trying("openat", errno.EEXIST, good=900),
        trying("openat", errno.EACCES),
    ],
    ids=["a server", "many files", "seldom", "it gets the lock", "another error"],
)
def test_files_that_are_not_waited_for(well: Facts) -> None:
    assert found(well) == []


def connecting(name: str = "save_state") -> Facts:
    """Two workers that sleep after each connection that is refused, and then try again."""
    sleeps = [
        waiting(pid, pid, "clock_nanosleep", own(name, 14), own("index", 20), CELERY)
        for pid in (7, 8)
    ]
    connect = [
        waiting(pid, pid, "clock_nanosleep", own("save_state", 12), CELERY, seconds=0.1)._replace(
            kind="cpu", kernel=("tcp_v4_connect", "__sys_connect")
        )
        for pid in (7, 8)
    ]
    refused = tuple(Connect(pid, errno.ECONNREFUSED, "127.0.0.1", 6379, 40) for pid in (7, 8))
    return facts(*sleeps, *connect)._replace(
        connects=refused,
        processes=tuple(Process(pid, 1, "celery", PYTHON) for pid in (7, 8)),
    )


def test_workers_that_are_refused_and_sleep_are_one_finding() -> None:
    (finding,) = (one for one in find(connecting()) if not one.is_busy and one.kind != "cpu")
    assert (finding.kind, finding.pids) == ("refused", (7, 8))
    assert "127.0.0.1:6379 8.0 times a second, and is refused" in finding.text
    assert "before it tries again" in finding.evidence[2]
    assert finding.cost == pytest.approx(0.6 + 1.8)


def test_sleeps_elsewhere_are_a_finding_of_their_own() -> None:
    measured = connecting("throttle")
    assert {one.kind for one in find(measured)} >= {"refused", "loop-blocked"}
