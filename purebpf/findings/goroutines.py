"""The waits of goroutines, as stays: no thread waits for their locks and channels. Pure.

Their thread numbers are negative. A goroutine that waits for a mutex is at work, and so is one in
own code that a library has called: in the handler of a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from purebpf.findings.facts import Endpoint, Facts, Goroutines, StackFrame
from purebpf.findings.ownership import Program
from purebpf.findings.stays import Stay
from purebpf.findings.waiting import Side
from purebpf.late_pattern import compile_later

__all__ = ["goroutine_stays", "judge_goroutine", "mean_of"]

_KINDS = tuple(
    (kind, compile_later(pattern))
    for kind, pattern in (
        ("connection", r"database/sql\.\(\*DB\)\.conn\b|.*[Pp]ool\)\.([gG]et|[aA]cquire)"),
        ("connection", r"net/http\.\(\*Transport\)\.getConn"),
        ("answer", r"net/http\.\(\*(persistConn|http2ClientConn)\)\.[rR]oundTrip"),
        ("lock", r"(internal/)?sync\.(\(\*(RW)?Mutex\)|runtime_Semacquire(RW)?Mutex)"),
        ("goroutines", r"sync\.\(\*(Cond|WaitGroup|Once)\)"),
        ("sleep", r"time\.Sleep"),
        ("network", r"internal/poll\.runtime_pollWait"),
        ("channel-send", r"runtime\.chansend"),
        ("channel-receive", r"runtime\.chanrecv"),
        ("select", r"runtime\.selectgo"),
    )
)
_PLUMBING = compile_later(r"(runtime|main\.main$|\[)")
_MOST = 100
"""Of one stack; more of them tell nothing new."""


def mean_of(one: Goroutines) -> float:
    """The mean number of goroutines that waited with this stack."""
    return sum(one.counts) / max(1, len(one.counts))


def goroutine_stays(facts: Facts, program_of: Callable[[int], Program]) -> Iterator[Stay]:
    """Yield the waits of goroutines in own functions."""
    names = {process.pid: process.comm for process in facts.processes}
    number = 0
    for one in facts.goroutines:
        most = min(_MOST, max(one.counts, default=0))
        kind, at, is_called = judge_goroutine(program_of(one.pid), one.user)
        if at is None:
            continue
        seconds = mean_of(one) * facts.elapsed_s / max(1, most)
        for _ in range(most):
            number -= 1
            yield Stay(
                *(one.pid, number, names.get(one.pid, ""), kind, seconds, 1, (), one.user),
                *("", 0, one.user[at], kind == "lock", is_called, False, Endpoint(), Side.UNKNOWN),
            )


def judge_goroutine(program: Program, user: Sequence[StackFrame]) -> tuple[str, int | None, bool]:
    """Return the kind of a goroutine's wait, where its own function is, and if a library called it.

    The place is an index of `user`, or None without an own function.
    """
    at = next((at for at, frame in enumerate(user) if program.owns(frame)), None)
    if at is None:
        return _kind(user), None, False
    return _kind(user[:at]), at, any(_is_library(program, frame) for frame in user[at + 1 :])


def _kind(inside: Sequence[StackFrame]) -> str:
    """The reason of a wait, by the functions inside of the own one."""
    for kind, pattern in _KINDS:
        if any(pattern.match(frame.name) for frame in inside):
            return kind
    return "other"


def _is_library(program: Program, frame: StackFrame) -> bool:
    return bool(frame.name) and not program.owns(frame) and not _PLUMBING.match(frame.name)
