"""Waits of one thread that stop others: full pipes, blocked event loops, children, queues."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay, seconds_of, threads_of
from purebpf.findings.facts import StackFrame
from purebpf.findings.finding import Finding
from purebpf.findings.grouping import by_function
from purebpf.findings.ownership import short_name
from purebpf.findings.rules.holders import are_goroutines, dump_of, inside
from purebpf.findings.turns import take_turns
from purebpf.findings.words import (
    call_site,
    chief,
    count_threads,
    describe_activity,
    describe_started,
    describe_wait,
    is_in_loop,
    share,
    way_to,
)
from purebpf.late_pattern import compile_later

__all__ = ["blocked_loops", "children", "full_pipes", "other_waits"]

_LEAST = 0.1
_LEAST_OF_OTHERS = 0.3
_COMPUTES = 0.5
"""The part of the time that a program runs, or is ready, which does the work of a pipeline."""
_PURPOSES = {
    "queue-full": " for room in a full queue",
    "permit": " for a permit or a free member of a pool",
    "turn": " for their turn",
    "result": " for a result",
    "barrier": " at a barrier for the slowest of them",
}
_TURNS = ("permit", "turn")
_AT_WORK = " in the middle of work"
_LOOP = "uv_run"
_WAITS_ITSELF = compile_later(r"uv_run|futex|pthread|uv_(cond|sem)|WaitSync")
_WAKERS = {"barrier": "the last to come"}
_PYTHON_WORKER = compile_later(r"concurrent/futures/thread\.py$")
_PYTHON_PROCESSES = compile_later(r"/(multiprocessing/\w+|concurrent/futures/process)\.py$")
_SHARED = frozenset({"queue-full", "semaphore", "pipe-read"})
"""Waits for something that another program may have, too."""
_TIMER, _MOSTLY = 0, 0.5
"""What ends a wait that has a timeout."""
_PART = compile_later(r"lambda|::__|^syscall$|^_*(pthread_cond|futex)_")
"""Functions inside of a library's, which nobody calls by these names."""
_NUMBER = compile_later(r"\d+$")
_STDERR = 2
_NO_FILES = ("/dev/", "/proc/", "/sys/")


def full_pipes(evidence: Evidence) -> Iterator[Finding]:
    """A write waits because who reads the pipe or socket does not."""
    for stays in by_function(evidence, evidence.work("pipe-write", "sock-write"), _kind):
        cost = evidence.rate(stays)
        stay, pids = max(stays, key=lambda one: one.seconds), chief(stays)
        if cost < _LEAST or _feeds_a_program_that_computes(evidence, stay, pids):
            continue
        call = "pipe_write" if stay.kind == "pipe-write" else "a socket's write"
        fd = stay.argument & 0xFFFFFFFF
        readers, path = _readers(evidence, stay, pids), evidence.path_of(stay.pid, fd)
        library = next((frame for frame in stay.user if frame.kind == "python"), None)
        function = evidence.spell(stay.own) if stay.own else ""
        function = function or call_site(evidence, pids, "send" if stay.kind[0] == "s" else "write")
        full = " ".join(filter(None, (f"fd {fd} is full", path and f"({path})")))
        written = f"written in {evidence.spell(library)}" if library else ""
        yield Finding(
            *("full-pipe", evidence.process(pids[0]).comm, pids, cost),
            f"blocks in {call}{f' of {function}' if function else ''}: {full}",
            (_reader(evidence, readers), _peer(stay), written),
            ("offcpu", "-p", str(pids[0])),
            own=evidence.source(stay.own),
        )


def _readers(evidence: Evidence, stay: Stay, pids: tuple[int, ...]) -> list[int]:
    readers = evidence.connections.readers_of(stay.endpoint) or _sharers(evidence, stay)
    return [pid for pid in readers if pid not in pids]


def _sharers(evidence: Evidence, stay: Stay) -> list[int]:
    """The processes that have a named pipe open."""
    path = evidence.path_of(stay.pid, stay.argument & 0xFFFFFFFF)
    links = evidence.facts.descriptors
    return [pid for pid in links if path in links[pid].values()] if path else []


def _feeds_a_program_that_computes(evidence: Evidence, stay: Stay, pids: tuple[int, ...]) -> bool:
    """Return True for a stage of a pipeline whose next stage has the work: `tar | gzip`."""
    if stay.kind != "pipe-write" or evidence.connections.is_service(pids):
        return False
    readers = _readers(evidence, stay, pids)
    stays = [one for pid in readers for one in evidence.by_process.get(pid, ())]
    computes = seconds_of(one for one in stays if one.kind in ("cpu", "queue"))
    return computes > _COMPUTES * seconds_of(stays) > 0.0


def _reader(evidence: Evidence, readers: list[int]) -> str:
    for pid in readers:
        mine = sorted(evidence.by_process.get(pid, ()), key=lambda stay: -stay.seconds)
        if mine:
            where = f" in {evidence.spell(mine[0].own)}" if mine[0].own else ""
            return f"read by {evidence.name(pid)}, which {describe_wait(mine[0])}{where}"
    return ""


def _peer(stay: Stay) -> str:
    endpoint = stay.endpoint
    return f"its peer is {endpoint.address}:{endpoint.port}" if endpoint.port else ""


def blocked_loops(evidence: Evidence) -> Iterator[Finding]:
    """Own code sleeps, or waits in a nested loop, where an event loop or a request needs it."""
    waits = [
        stay
        for stay in evidence.work("sleep", "nap", "nested-loop")
        if stay.own or stay.kind != "sleep"
    ]
    for stays in by_function(evidence, waits, _kind):
        cost = evidence.rate(stays)
        if cost < _LEAST:
            continue
        stay, pids = max(stays, key=lambda one: one.seconds), chief(stays)
        text, support = _SLEEPS[stay.kind](evidence, stays, stay)
        yield Finding(
            *("loop-blocked", evidence.process(pids[0]).comm, pids, cost, text, support),
            ("offcpu", "-p", str(pids[0])),
            own=evidence.source(stay.own),
        )


def _nested_loop(evidence: Evidence, stays: list[Stay], stay: Stay) -> tuple[str, tuple[str, ...]]:
    each, times = share(evidence.rate(stays), threads_of(stays)), sum(one.times for one in stays)
    text = f"a call that waits blocks its event loop {each} of the time: {_inner_call(stay)}"
    return text, (f"{times} times, {1000 * seconds_of(stays) / max(1, times):.0f} ms each",)


def _sleep(evidence: Evidence, stays: list[Stay], stay: Stay) -> tuple[str, tuple[str, ...]]:
    each, path = share(evidence.rate(stays), threads_of(stays)), way_to(evidence, stay)
    called = _called(stay)
    text = f"{evidence.spell(stay.own)} sleeps {each} of the time"
    text += f" in {evidence.spell(called)} of a library, which tries again" if called else ""
    text += " and blocks the event loop" if is_in_loop(stay) else "" if called else _AT_WORK
    if called:
        return text, (_shared_file(evidence, chief(stays)), f"by {path}" if " > " in path else "")
    return text, (f"by {path}" if " > " in path else f"{sum(one.times for one in stays)} times",)


def _called(stay: Stay) -> StackFrame | None:
    """The function of a library in Python that an own function called, and that sleeps."""
    inside = stay.user[: stay.user.index(stay.own)] if stay.own in stay.user else ()
    first = next((frame for frame in inside if frame.kind == "python"), None)
    return first if first is not None and "/site-packages/" in first.module else None


def _nap(evidence: Evidence, stays: list[Stay], stay: Stay) -> tuple[str, tuple[str, ...]]:
    """A library sleeps between two looks at something that is not ready."""
    named = next(frame for frame in stay.user if ".so" in frame.module and _is_asked(frame))
    library = named.module.rpartition("/")[2]
    each = share(evidence.rate(stays), threads_of(stays))
    who = f"{evidence.spell(stay.own)} waits" if stay.own else "waits"
    text = f"{who} {each} of the time in {short_name(named.name)} ({library}), which sleeps and "
    text += "tries again"
    text += "; that blocks the event loop" if is_in_loop(stay) else ""
    return text, (_shared_file(evidence, chief(stays)),)


_SLEEPS = {"sleep": _sleep, "nap": _nap, "nested-loop": _nested_loop}


def _is_asked(frame: StackFrame) -> bool:
    """Return True for a function of a library that has a name, and no sleep of libc."""
    return "!0x" not in frame.name and "sleep" not in frame.name and "/libc." not in frame.module


def _shared_file(evidence: Evidence, pids: tuple[int, ...]) -> str:
    """A file that these processes and others have open, and who the others are."""
    links = evidence.facts.descriptors
    mine = {
        link
        for pid in pids
        for fd, link in links.get(pid, {}).items()
        if fd > _STDERR and link.startswith("/") and not link.startswith(_NO_FILES)
        if not link.endswith(" (deleted)")  # a server's own file of heartbeats, not a database
    }
    for path in sorted(mine):
        others = [pid for pid in links if pid not in pids and path in links[pid].values()]
        if others:
            return f"{path} is also open in {', '.join(map(evidence.name, others[:2]))}"
    return ""


def _inner_call(stay: Stay) -> str:
    """The call of the runtime that waits or runs a loop inside of the loop."""
    names = [frame.name for frame in stay.user]
    inner = names[: names.index(_LOOP)]
    below = names[len(inner) + 1 :] if names.count(_LOOP) > 1 else inner
    calls = (short_name(name) for name in below if name and not _WAITS_ITSELF.search(name))
    return next(calls, "?")


def children(evidence: Evidence) -> Iterator[Finding]:
    """Own code waits for a child process in the middle of work."""
    for stays in by_function(evidence, evidence.work("child"), _kind):
        cost = evidence.rate(stays)
        pids = chief(stays)
        if cost < _LEAST or stays[0].own is None or not evidence.connections.is_service(pids):
            continue  # a script may wait for its children
        text = f"{evidence.spell(stays[0].own)} waits for a child process "
        text += f"{share(cost, threads_of(stays))} of the time"
        text += " and blocks the event loop" if is_in_loop(stays[0]) else ""
        yield Finding(
            *("child", evidence.process(pids[0]).comm, pids, cost, text),
            (describe_started(evidence, pids), _writer(evidence, stays)),
            ("exec", "-p", str(pids[0]), "--tree"),
            own=evidence.source(stays[0].own),
        )


def other_waits(evidence: Evidence) -> Iterator[Finding]:
    """Work that waits to be woken: a full queue, a result of a pool. The weakest of the rules."""
    kinds = ("cond", "semaphore", "pipe-read", "poll", *_PURPOSES)
    waits = [stay for stay in evidence.work(*kinds) if stay.own or _is_told_by_call(stay)]
    for stays in by_function(evidence, waits, _kind):
        cost = evidence.rate(stays)
        stay, pids = max(stays, key=lambda one: (one.own is not None, one.seconds)), chief(stays)
        where = f"{evidence.spell(stay.own)}{_via(evidence, stay)}" if stay.own else stay.call
        if cost < _LEAST_OF_OTHERS or not _are_waited_for(evidence, stays):
            continue
        support = (
            _who_has_one(evidence, stays)
            or _own_pool(evidence, stays)
            or _writer(evidence, stays)
            or _worker_processes(evidence, stays)
            or _waker(evidence, stays)
        )
        yield Finding(
            *("waits", evidence.process(pids[0]).comm, pids, cost),
            f"{count_threads(stays, 'wait')}{_PURPOSES.get(stay.kind, '')} in {where}",
            (support,),
            dump_of(evidence, pids[0]) if are_goroutines(stays) else _offcpu(pids[0]),
            own=evidence.source(stay.own),
        )


def _is_told_by_call(stay: Stay) -> bool:
    """Return True for a wait without a stack whose system call says all: mq_timedsend."""
    return stay.kind == "queue-full" and not stay.user and bool(stay.call)


def _offcpu(pid: int) -> tuple[str, ...]:
    return ("offcpu", "--waker", "-p", str(pid))


def _who_has_one(evidence: Evidence, stays: list[Stay]) -> str:
    """The activity of those that have the permit others wait for: coroutines, or threads that take
    turns.
    """
    if are_goroutines(stays):
        does = inside(evidence, stays[0].pid, stays[0].own, ("permit",))
    elif stays[0].kind in _TURNS and take_turns(evidence.wakers_of(stays), stays):
        tids = {stay.tid for stay in stays}
        others = (one for tid in tids for one in evidence.by_thread.get(tid, ()))
        does = [
            one
            for one in others
            if (one.is_work or one.kind == "sleep") and one.kind not in (*_TURNS, "queue")
        ]
    else:
        return ""
    activity = describe_activity(evidence, does)
    who = "the one whose turn it is" if stays[0].kind == "turn" else "who has one"
    return f"{who} {activity}" if activity else f"{who} did not show"


def _waker(evidence: Evidence, stays: list[Stay]) -> str:
    """The activity of the threads that end these waits."""
    tids, wakers = {one.tid for one in stays}, evidence.wakers_of(stays)
    does = [
        one
        for waker, _ in wakers.most_common(8)
        for one in evidence.by_thread.get(waker, ())
        if waker not in tids and one.own and (one.is_work or one.kind == "sleep")
    ]
    does = [one for one in does if one.kind != "queue"] or does
    who, activity = _WAKERS.get(stays[0].kind, "who wakes them"), describe_activity(evidence, does)
    stranger = _stranger(evidence, stays, wakers)
    if stranger:
        return f"{who} is {stranger}" + (f", which {activity}" if activity else "")
    if not activity and all(stay.is_open for stay in stays):
        return "nobody woke them all the time"
    if wakers[_TIMER] > _MOSTLY * wakers.total() > 0:
        each_ms = 1000 * seconds_of(stays) / max(1, sum(stay.times for stay in stays))
        return f"nobody wakes them: each wait ends by its timeout, {each_ms:.0f} ms in the mean"
    if not activity and _time_out(evidence, stays):
        return "nobody wakes them: each wait ends by its timeout (ETIMEDOUT)"
    return f"{who} {activity}" if activity else f"{who} did not show"


def _time_out(evidence: Evidence, stays: list[Stay]) -> bool:
    """Return True if as many waits ended by their time limit as these were."""
    pids = chief(stays)
    expired = evidence.count_calls(pids, ("futex",), errno.ETIMEDOUT)
    return expired > _MOSTLY * sum(stay.times for stay in stays) > 0


def _stranger(evidence: Evidence, stays: list[Stay], wakers: Counter[int]) -> str:
    """The other program that wakes them, or ""; a futex is none of its business."""
    waker = next((tid for tid, _ in wakers.most_common(1)), _TIMER)
    pid = evidence.process_of_thread.get(waker, 0)
    is_other = pid in evidence.processes and evidence.family(pid) != evidence.family(stays[0].pid)
    return evidence.name(pid) if is_other and stays[0].kind in _SHARED else ""


def _own_pool(evidence: Evidence, stays: list[Stay]) -> str:
    """A clause about threads that wait for results, where no thread of their pool is left."""
    if stays[0].kind != "result" or not all(stay.is_open for stay in stays):
        return ""
    teams = {_team(evidence, stay) for stay in stays}
    team = next(iter(teams))
    others = (
        stay.tid
        for stay in evidence.by_process.get(stays[0].pid, ())
        if _team(evidence, stay) == team and stay.kind not in ("cpu", "queue")
    )
    if len(teams) > 1 or not team or set(others) - {stay.tid for stay in stays}:
        return ""
    return f"these are all threads {team}, and none got a result: a deadlock of pools?"


def _worker_processes(evidence: Evidence, stays: list[Stay]) -> str:
    """A clause about the processes of a pool of Python, which work for the threads that wait."""
    is_pool = any(_PYTHON_PROCESSES.search(frame.module) for stay in stays for frame in stay.user)
    workers = [one.pid for one in evidence.facts.processes if one.ppid == stays[0].pid]
    busy = [
        stay
        for pid in workers
        for stay in evidence.by_process.get(pid, ())
        if stay.own is not None
        and stay.own.name != "<module>"
        and (stay.is_work or stay.kind == "cpu")
    ]
    if not is_pool or not busy:
        return ""
    noun = "processes" if len(workers) > 1 else "process"
    chief_one, activity = evidence.name(chief(busy)[0]), describe_activity(evidence, busy)
    return f"the pool has {len(workers)} {noun}: {chief_one} {activity}"


def _team(evidence: Evidence, stay: Stay) -> str:
    """The pool of a thread: threads of one name with numbers, or of an executor of Python."""
    name = _NUMBER.sub("", stay.comm)
    if name != stay.comm != evidence.process(stay.pid).comm:
        return f'"{name}"'
    is_worker = any(_PYTHON_WORKER.search(frame.module) for frame in stay.user)
    return "of a Python executor" if is_worker else ""


def _writer(evidence: Evidence, stays: list[Stay]) -> str:
    """A clause about the processes that have the other end of a pipe, which is not closed."""
    inodes = {stay.endpoint.inode for stay in stays if stay.endpoint.kind == "pipe"}
    writers = [
        pid
        for inode in sorted(inodes)
        for pid in evidence.connections.pipes.get(inode, ())
        if pid not in {stay.pid for stay in stays}
    ]
    if stays[0].kind not in ("pipe-read", "child") or not writers:
        return ""
    activity = describe_activity(evidence, evidence.by_process.get(writers[0], ()))
    text = f"the pipe is open in {evidence.name(writers[0])}"
    return f"{text}, which {activity}" if activity else text


def _are_waited_for(evidence: Evidence, stays: list[Stay]) -> bool:
    """Return True for threads of a service, and for those that have asked for something.

    The only thread that waits for results is a program that waits for its own pool, and so are
    those that never get one, unless they are a pool themselves.
    """
    if stays[0].kind == "result" and all(stay.is_open for stay in stays):
        is_asked = evidence.connections.is_service(chief(stays)) and stays[0].is_called
        return is_asked or bool(_own_pool(evidence, stays))
    if evidence.connections.is_service({stay.pid for stay in stays}):
        return True
    return stays[0].kind in _PURPOSES and (stays[0].kind != "result" or threads_of(stays) > 1)


def _via(evidence: Evidence, stay: Stay) -> str:
    """The library's function that the own one called."""
    assert stay.own is not None
    if stay.kind in ("barrier", "result"):
        return ""
    below = stay.user[: stay.user.index(stay.own)]
    called = next((frame for frame in reversed(below) if frame.kind == "python"), None)
    if called is None and stay.kind in _PURPOSES and stay.kind != "result":
        named = (frame for frame in reversed(below) if frame.name and not _PART.search(frame.name))
        called = next(named, None)
    return f" for {evidence.spell(called).removeprefix('__libc_')}" if called else ""


def _kind(stay: Stay) -> str:
    return stay.kind
