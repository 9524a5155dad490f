"""Threads that were seen in one wait only: a thread for each request, which ends with it."""

from __future__ import annotations

import errno

import pytest

from purebpf.findings.facts import Activity, CallCount, Facts, Process, Socket, StackFrame
from purebpf.findings.find import find
from tests.support.builders.facts import facts, native, waiting

EXE = "/srv/gated"


def serving(*path: str, expired: int = 0, port: int = 8000) -> Facts:
    """Threads of a server that wait for a futex."""
    frames = (native("syscall"), *(StackFrame(name, EXE) for name in path))
    stays: list[Activity] = [
        waiting(7, tid, "futex", *frames, seconds=4.0, times=10) for tid in (8, 9, 10)
    ]
    return facts(*stays, exe=EXE)._replace(
        calls=(CallCount(7, "futex", errno.ETIMEDOUT, expired),),
        processes=(Process(7, 1, "gated", EXE),),
        sockets=(Socket(51, "tcp", "0.0.0.0", port, "", 0, 10),),
        descriptors={7: {3: "socket:[51]"}},
    )


def test_a_wait_inside_of_a_request_is_a_finding() -> None:
    (finding,) = find(serving("await_result.isra.0", "handle_client", "serve"))
    assert finding.text == "3 threads wait in await_result"
    assert finding.evidence == ("who wakes them did not show",)
    (finding,) = find(serving("await_result", "handle_client", "serve", expired=30))
    assert finding.evidence[0].endswith("each wait ends by its timeout (ETIMEDOUT)")


@pytest.mark.parametrize(
    "path", [("take_job", "handle_client", "serve"), ("await_result", "run", "main")]
)
def test_others_may_wait_for_work(path: tuple[str, ...]) -> None:
    assert find(serving(*path)) == []
