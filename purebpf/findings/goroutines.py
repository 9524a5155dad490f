"""The waits of goroutines and of coroutines of Python, as stays: no thread waits in them. Pure.

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

__all__ = ["are_coroutines", "goroutine_stays", "judge_goroutine", "mean_of"]

_KINDS = tuple(
    (kind, compile_later(pattern))
    for kind, pattern in (
        ("connection", r"database/sql\.\(\*DB\)\.conn\b|.*[Pp]ool\)\.([gG]et|[aA]cquire)"),
        ("connection", r"net/http\.\(\*Transport\)\.getConn"),
        ("answer", r"net/http\.\(\*(persistConn|http2ClientConn)\)\.[rR]oundTrip"),
        ("lock", r"(internal/)?sync\.(\(\*(RW)?Mutex\)|runtime_Semacquire(RW)?Mutex)"),
        ("write", r"internal/poll\.\(\*FD\)\.(Write|Send)"),
        ("goroutines", r"sync\.\(\*(Cond|WaitGroup|Once)\)"),
        ("sleep", r"time\.Sleep"),
        ("network", r"internal/poll\.runtime_pollWait"),
        ("channel-send", r"runtime\.chansend"),
        ("channel-receive", r"runtime\.chanrecv"),
        ("select", r"runtime\.selectgo"),
    )
)
_LIBRARY = r"\S*/(asyncio/\w+|anyio/.+)\.py"
_OF_COROUTINES = tuple(
    (kind, compile_later(pattern))
    for kind, pattern in (
        ("connection", r"\S*[Pp]ool\w*\.(_?acquire|_?get\w*|wait_for_conn\w*|__aenter__) "),
        ("connection", r"\w*Connector\._wait_for_available\w* "),
        ("permit", rf"\w*(Semaphore|Limiter)\.\w+ {_LIBRARY}"),
        ("channel-send", rf"\w*Queue\.put {_LIBRARY}"),
        ("channel-receive", rf"\w*Queue\.get {_LIBRARY}"),
        ("lock", rf"(Lock|Condition)\.(acquire|__aenter__) {_LIBRARY}"),
        ("answer", rf"StreamReader\.\w+ {_LIBRARY}|\w+ \S*/asyncio/streams\.py"),
        ("answer", r".* \S*/(aiohttp|httpcore|httpx|asyncpg|aioredis|redis|aiomysql|psycopg)/"),
        ("write", rf"StreamWriter\.\w+ {_LIBRARY}"),
        ("child", rf"(Process|BaseSubprocessTransport|\w*Popen)\.\w+ {_LIBRARY}"),
        ("sleep", rf"(sleep|sleep_until) {_LIBRARY}"),
        ("goroutines", rf"(Event|Barrier)\.wait {_LIBRARY}"),
    )
)
"""The functions and files of coroutines of libraries that an own one awaits; a pool has locks."""
_POOLS = compile_later(r"\w*[Pp]ool\w*\.|\S+ \S*/(sqlalchemy/|[^/]*pool[^/]*\.py$)")
"""Coroutines of libraries that keep the free members of a pool in a queue."""
_ALWAYS_WORK = frozenset({"lock", "permit", "connection", "channel-send"})
_BELOW_HOME = frozenset({"answer", "sleep", "goroutines", "write", "child"})
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
        is_work = kind == "lock"
        if are_coroutines(one.user):
            own = sum(map(program_of(one.pid).owns, one.user))
            is_work = kind in _ALWAYS_WORK or (kind in _BELOW_HOME and own > 1)
            is_called = is_called and kind != "channel-receive"
        seconds = mean_of(one) * facts.elapsed_s / max(1, most)
        for _ in range(most):
            number -= 1
            yield Stay(
                *(one.pid, number, names.get(one.pid, ""), kind, seconds, 1, (), one.user),
                *("", 0, one.user[at], is_work, is_called, False, Endpoint(), Side.UNKNOWN),
            )


def judge_goroutine(program: Program, user: Sequence[StackFrame]) -> tuple[str, int | None, bool]:
    """Return the kind of a goroutine's wait, where its own function is, and if a library called it.

    The place is an index of `user`, or None without an own function.
    """
    at = next((at for at, frame in enumerate(user) if program.owns(frame)), None)
    inside = user if at is None else user[:at]
    kind = _kind_of_coroutine(inside) if are_coroutines(user) else _kind(inside)
    if at is None:
        return kind, None, False
    return kind, at, any(_is_library(program, frame) for frame in user[at + 1 :])


def are_coroutines(user: Sequence[StackFrame]) -> bool:
    """Return True for a stack of coroutines of Python."""
    return bool(user) and user[0].kind == "python"


def _kind_of_coroutine(inside: Sequence[StackFrame]) -> str:
    """The reason of a wait, by the coroutines that the own one awaits, the innermost first."""
    texts = [f"{frame.name} {frame.module}" for frame in inside]
    for kind, pattern in _OF_COROUTINES:
        if any(map(pattern.match, texts)):
            is_pool = kind == "channel-receive" and any(map(_POOLS.match, texts))
            return "connection" if is_pool else kind
    return "other"


def _kind(inside: Sequence[StackFrame]) -> str:
    """The reason of a wait, by the functions inside of the own one."""
    for kind, pattern in _KINDS:
        if any(pattern.match(frame.name) for frame in inside):
            return kind
    return "other"


def _is_library(program: Program, frame: StackFrame) -> bool:
    return bool(frame.name) and not program.owns(frame) and not _PLUMBING.match(frame.name)
