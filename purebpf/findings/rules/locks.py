"""Locks of user space: convoys with their holders, deadlocks, thundering herds, locks of files."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator

from purebpf.findings.evidence import Evidence, Stay, seconds_of, threads_of
from purebpf.findings.facts import StackFrame
from purebpf.findings.finding import Finding
from purebpf.findings.grouping import by_function
from purebpf.findings.ownership import is_java
from purebpf.findings.rings import find_ring
from purebpf.findings.rules.file_locks import describe_file_lock, file_lock_ring
from purebpf.findings.rules.holders import (
    are_goroutines,
    describe_holder,
    dump_of,
    is_below,
    is_endless,
    is_still,
    owners_now,
)
from purebpf.findings.words import chief, count_threads, count_waiting, describe_activity

__all__ = ["convoys", "deadlocks", "shared_semaphores"]

_LEAST, _LEAST_OF_GOROUTINES = 0.05, 0.8
"""Seconds a second. Few looks at goroutines tell less than waits of threads."""
_KINDS = ("lock", "file-lock")
_HERD = 4
_STANDBYS = 2
"""Processes that may wait for the lock of a file until its holder ends."""
_LIBC = re.compile(r"/(libc|libpthread|ld-linux|libstdc\+\+)[^/]*$")
_OF_LIBC = (
    (
        "malloc",
        re.compile(r"_*(GI_|libc_|int_)*(malloc|free|calloc|realloc|memalign|arena_)|tcache"),
    ),
    ("stdio", re.compile(r"_IO_|_*(GI_)?_*(flockfile|f?puts|fwrite|fflush|putc|v?f?printf)")),
    ("the dynamic linker", re.compile(r"_*dl_|_*(GI_)?_*dl(open|sym|_iterate_phdr)")),
)
"""Parts of the C library with locks of their own."""
_PARKS = re.compile(r"Unsafe_Park|Parker::|ObjectMonitor|java\.util\.concurrent\.locks")
_INTERPRETER = re.compile(r"libpython|\.cpython-")
_SEMAPHORE_CALLS = ("semop", "semtimedop")
_LATCH = "PGSemaphoreLock"
"""PostgreSQL's own locks: its rules say more."""
_SEM_WAIT, _NEAR = re.compile(r"_*(new_)?sem_(clock|timed)?wait"), 4
_PYTHON_LOCKS = re.compile(r"/(queue|threading|concurrent/futures/\w+)\.py$")
_FREE = frozenset({"accept", "epoll", "poll", "signal", "sock-read"})
"""Waits of workers for requests. Some servers take a semaphore before they accept one."""
_MOSTLY_FREE = 0.1
_LEAST_OF_SEMAPHORES = 0.3
_STILL = "nothing moves: a deadlock, it seems"
_MOST_TAKERS = 3
"""Functions that are named."""


def convoys(evidence: Evidence) -> Iterator[Finding]:
    """Find threads that queue for a lock that its holder releases in the end."""
    for stays in _places(evidence):
        cost = evidence.rate(stays)
        least = _LEAST_OF_GOROUTINES if are_goroutines(stays) else _LEAST
        is_standby = stays[0].kind == "file-lock" and threads_of(stays) <= _STANDBYS
        is_silent = stays[0].kind == "lock" or is_standby
        if cost < least or (is_silent and _is_stuck(evidence, stays)):
            continue
        if stays[0].kind == "file-lock" and file_lock_ring(evidence, stays):
            continue
        pids, where = chief(stays), _taker(stays)
        command: tuple[str, ...] = ("offcpu", "-p", str(pids[0]))
        if stays[0].kind == "file-lock":
            text, support = describe_file_lock(evidence, stays, where)
        else:
            text, support = _convoy(evidence, stays, pids, where)
            if are_goroutines(stays):
                command = dump_of(evidence, pids[0])
            elif _are_futexes(stays):
                command = ("lock", "--userspace", "-p", str(pids[0]))
        if support.endswith(_STILL) and len(still := _still(evidence, pids[0])) > 1:
            if where != _taker(still[0]):
                continue
            text, support = _several(evidence, still), _STILL
            cost = sum(map(evidence.rate, still))
        source = evidence.source(where)
        name = evidence.process(pids[0]).comm
        yield Finding("lock-convoy", name, pids, cost, text, (support,), command, own=source)


def _still(evidence: Evidence, pid: int) -> list[list[Stay]]:
    """The places in which goroutines of a process wait where nothing moves, the first one first."""
    return [
        stays
        for stays in _places(evidence)
        if stays[0].pid == pid and are_goroutines(stays) and stays[0].kind == "lock"
        if evidence.rate(stays) >= _LEAST_OF_GOROUTINES
    ]


def _several(evidence: Evidence, places: list[list[Stay]]) -> str:
    """A clause about goroutines that wait for several locks, of each other it seems."""
    takers = [evidence.spell(_taker(stays)) for stays in places[:_MOST_TAKERS]]
    many = count_waiting(
        [stay for stays in places for stay in stays], sum(map(evidence.rate, places))
    )
    return f"{many} for locks that {' and '.join(takers)} take"


def _are_futexes(stays: list[Stay]) -> bool:
    """Return True for locks that wait in futex(2): Java's locks do not, nor locks that nap."""
    return not any(map(is_java, stays[0].user)) and "nanosleep" not in stays[0].call


def _convoy(
    evidence: Evidence, stays: list[Stay], pids: tuple[int, ...], where: StackFrame | None
) -> tuple[str, str]:
    if _is_herd(stays):
        text = (
            f"wakes up to {threads_of(stays)} threads at once, which then queue for the mutex "
            f"that {evidence.spell(where)} takes (a thundering herd)"
        )
        times = sum(stay.times for stay in stays) / evidence.elapsed_s
        return text, f"{times:.0f} times a second: a broadcast where one thread would do"
    many = count_waiting(stays, evidence.rate(stays)) if threads_of(stays) > 1 else "waits"
    library = _library(max(stays, key=lambda stay: stay.seconds))
    taken = f"the lock that {evidence.spell(where)} takes" if where else "a lock"
    text = f"{many} for {taken}"
    text = f"{many} for a lock of {library} in {evidence.spell(where)}" if library else text
    support = describe_holder(evidence, stays, where)
    if are_goroutines(stays) and is_still(evidence, pids):
        support += f"; {_STILL}"
    return text, support


def _library(stay: Stay) -> str:
    """The library that takes the lock for a function of the program; "" for its own locks."""
    if stay.own is None:
        return ""
    if stay.own.kind in ("user", "inlined") and stay.own.module != "[jit]":
        return _part_of_libc(stay)
    if any(_PARKS.match(frame.name) for frame in stay.user):  # a lock of Java's library
        return ""
    outer = (frame.module for frame in stay.user if not _LIBC.search(frame.module))
    module = next(outer, "")
    is_library = ".so" in module and not _INTERPRETER.search(module)
    return module.rpartition("/")[2] if is_library else ""


def _part_of_libc(stay: Stay) -> str:
    """The part of the C library that takes a lock of its own."""
    for frame in stay.user:
        if not _LIBC.search(frame.module):
            return ""
        for part, pattern in _OF_LIBC:
            if pattern.match(frame.name):
                return part
    return ""


def deadlocks(evidence: Evidence) -> Iterator[Finding]:
    """Threads wait all the time for locks: of each other, or of nobody who gives them back."""
    stuck: dict[int, list[list[Stay]]] = defaultdict(list)
    for stays in _places(evidence):
        endless = [stay for stay in stays if is_endless(evidence, stay)]
        if (
            endless
            and _is_stuck(evidence, stays)
            and evidence.rate(stays) >= _LEAST
            and stays[0].kind == "lock"
        ):
            for pid in {stay.pid for stay in endless}:
                stuck[pid].append([stay for stay in endless if stay.pid == pid])
    for pids, places in _alike(evidence, stuck):
        pid = pids[0]
        ring = _ring(evidence, pid)
        cost = len(pids) * sum(evidence.rate(stays) for stays in places)
        text, support = (
            _ring_text(evidence, ring, places) if ring else _stuck_text(evidence, places)
        )
        yield Finding(
            *("deadlock", evidence.process(pid).comm, pids, cost),
            f"{len(pids)} processes, in each {text}" if len(pids) > 1 else text,
            (_forked(evidence, pid) if not ring else "", support),
            ("dump", str(pid)),
            own=evidence.source(_taker(places[0])),
        )


def _alike(
    evidence: Evidence, stuck: dict[int, list[list[Stay]]]
) -> Iterator[tuple[tuple[int, ...], list[list[Stay]]]]:
    """Yield processes of a program that are stuck in the same functions, and the stays of one."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for pid, places in stuck.items():
        places.sort(key=len)
        names = tuple((evidence.spell(_taker(stays)), threads_of(stays)) for stays in places)
        groups[evidence.family(pid), names].append(pid)
    for pids in groups.values():
        yield tuple(pids), stuck[pids[0]]


def _forked(evidence: Evidence, pid: int) -> str:
    """A clause about a child of a program with threads, of which a fork copies only one."""
    parent = evidence.process(evidence.process(pid).ppid)
    is_fork = parent.pid and evidence.family(pid) == evidence.family(parent.pid)
    if not is_fork or parent.threads < 2 or evidence.process(pid).threads > 1:  # noqa: PLR2004
        return ""
    return (
        f"forked by {evidence.name(parent.pid)}, which has {parent.threads} threads: one of them "
        "may have had the lock"
    )


def shared_semaphores(evidence: Evidence) -> Iterator[Finding]:
    """Threads or processes take turns for a semaphore: who holds it is one of them."""
    groups: dict[tuple[tuple[str, str], Hashable], list[Stay]] = defaultdict(list)
    for stay in evidence.stays:
        semaphore = _semaphore(stay)
        if semaphore is not None and not stay.is_work:
            groups[evidence.family(stay.pid), semaphore].append(stay)
    for stays in groups.values():
        cost, tids = evidence.rate(stays), {stay.tid for stay in stays}
        does = [
            stay
            for tid in tids
            for stay in evidence.by_thread[tid]
            if _semaphore(stay) is None and stay.kind != "queue"
        ]
        free_s = seconds_of(stay for stay in does if stay.kind in _FREE)
        is_given = any(tids & evidence.wakers.get(tid, {}).keys() for tid in tids)
        takes_turns = is_given and free_s < _MOSTLY_FREE * seconds_of(does)
        if cost < _LEAST_OF_SEMAPHORES or len(tids) < 2 or not takes_turns:  # noqa: PLR2004
            continue
        pids, activity = chief(stays), describe_activity(evidence, does)
        where = _taker(stays)
        kind = "System V" if stays[0].call in _SEMAPHORE_CALLS else "POSIX"
        call = "semop" if kind == "System V" else "sem_wait"
        yield Finding(
            *("lock-convoy", evidence.process(pids[0]).comm, pids, cost),
            f"{count_threads(stays, 'wait')} for a {kind} semaphore ({call})"
            f"{f' in {evidence.spell(where)}' if where else ''} that they give to each other",
            (f"who has it {activity}", evidence.process(pids[0]).command),
            ("offcpu", "-p", str(pids[0])),
            own=evidence.source(where),
        )


def _semaphore(stay: Stay) -> Hashable:
    """Return a key that the waits for one semaphore share; None for another wait.

    Processes that share a POSIX semaphore have it at addresses of their own.
    """
    if stay.kind == "semaphore" and stay.call in _SEMAPHORE_CALLS:
        return stay.argument
    script = next((frame for frame in stay.user if frame.kind == "python"), None)
    if script is not None and _PYTHON_LOCKS.search(script.module):
        return None  # Python makes its locks of semaphores
    names = [frame.name for frame in stay.user[:_NEAR]]
    is_posix = any(map(_SEM_WAIT.match, names)) and _LATCH not in names
    return stay.own.name if is_posix and stay.own is not None else None


def _places(evidence: Evidence) -> list[list[Stay]]:
    """Waits for locks, by program and by the function that takes the lock."""
    return by_function(evidence, evidence.work(*_KINDS), lambda stay: stay.kind)


def _taker(stays: list[Stay]) -> StackFrame | None:
    return next((stay.own for stay in stays if stay.own is not None), None)


def _is_stuck(evidence: Evidence, stays: list[Stay]) -> bool:
    """Return True if nobody gets the lock: a ring of owners, or no turn in the whole time.

    Unfair locks keep some threads waiting for ever while others take turns: that is a convoy.
    """
    endless = [stay for stay in stays if is_endless(evidence, stay)]
    if not endless:
        return False
    if any(_ring(evidence, pid) for pid in {stay.pid for stay in endless}):
        return True
    if any(not stay.is_open for stay in stays):
        return False
    where, waiting = _taker(stays), {stay.tid for stay in stays}
    return not any(
        stay.tid not in waiting and stay.kind != "lock" and is_below(stay, where)
        for pid in {stay.pid for stay in endless}
        for stay in evidence.by_process.get(pid, ())
    )


def _is_herd(stays: list[Stay]) -> bool:
    relocking = [s for s in stays if any("mutex_cond_lock" in f.name for f in s.user)]
    return threads_of(stays) > _HERD and seconds_of(relocking) > 0.5 * seconds_of(stays)


# Rings


def _ring(evidence: Evidence, pid: int) -> list[int]:
    """Return threads that wait for a lock of the next one, the last for one of the first."""
    return find_ring(owners_now(evidence, pid))


def _ring_text(evidence: Evidence, ring: list[int], places: list[list[Stay]]) -> tuple[str, str]:
    takers = [
        _taker([s for s in evidence.by_thread.get(tid, ()) if s.kind == "lock"]) for tid in ring
    ]
    names = [evidence.spell(taker) for taker in takers]
    if len(ring) == 2:  # noqa: PLR2004
        text = f"deadlock: {names[0]} and {names[1]} each wait for the lock that the other holds"
    else:
        text = "deadlock: " + " waits for the lock of ".join([*names, names[0]])
    behind = [stays for stays in places if evidence.spell(_taker(stays)) not in names]
    support = f"threads {', '.join(map(str, ring))}"
    waiting = sum(map(threads_of, places)) - len(ring)
    if waiting > 0:
        support += f"; {waiting} more wait behind them"
        support += ", in " + ", ".join(evidence.spell(_taker(s)) for s in behind) if behind else ""
    return text, support


def _stuck_text(evidence: Evidence, places: list[list[Stay]]) -> tuple[str, str]:
    stays = [stay for place in places for stay in place]
    word = "deadlock, it seems" if len(places) > 1 else "a lock that nobody gives back"
    names = ", ".join(evidence.spell(_taker(place)) for place in places)
    verb = "waits" if threads_of(stays) == 1 else "wait"
    text = f"{word}: {count_threads(stays)} {verb} all the time for locks, in {names}"
    owners = owners_now(evidence, stays[0].pid)
    tids = {owners[stay.tid] for stay in stays if stay.tid in owners}
    does = [stay for tid in tids for stay in evidence.by_thread.get(tid, ())]
    activity = describe_activity(evidence, [stay for stay in does if stay.kind != "queue"])
    return text, f"who has it {activity}" if activity else "their owners could not be read"
