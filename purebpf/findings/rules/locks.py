"""Locks of user space: convoys with their holders, deadlocks, thundering herds, locks of files."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay, seconds_of, threads_of
from purebpf.findings.facts import StackFrame
from purebpf.findings.finding import Finding
from purebpf.findings.grouping import by_function
from purebpf.findings.ownership import is_java
from purebpf.findings.rings import find_ring
from purebpf.findings.words import chief, count_threads, describe_activity

__all__ = ["convoys", "deadlocks", "shared_semaphores"]

_LEAST, _LEAST_OF_GOROUTINES = 0.05, 0.8
"""Seconds a second. Few looks at goroutines tell less than waits of threads."""
_STILL, _STILL_CPUS = 2.0, 0.02
"""Waits a second that end, and CPUs, of a process in which nothing happens."""
_ALL_THE_TIME = 0.9
"""The part of a measurement that a wait lasts which never ends."""
_KINDS = ("lock", "file-lock")
_HERD = 4
_SEMAPHORE_CALLS = ("semop", "semtimedop")
_FREE = frozenset({"accept", "epoll", "poll", "signal", "sock-read"})
"""Waits of workers for requests. Some servers take a semaphore before they accept one."""
_MOSTLY_FREE = 0.1
_LEAST_OF_SEMAPHORES = 0.3


def convoys(evidence: Evidence) -> Iterator[Finding]:
    """Find threads that queue for a lock that its holder releases in the end."""
    for stays in _places(evidence):
        cost = evidence.rate(stays)
        least = _LEAST_OF_GOROUTINES if _are_goroutines(stays) else _LEAST
        if cost < least or _is_stuck(evidence, stays):
            continue
        pids, where = chief(stays), _taker(stays)
        command: tuple[str, ...] = ("lock", "--userspace", "-p", str(pids[0]))
        if stays[0].kind == "file-lock":
            text, support = _file_lock(evidence, stays)
            command = ("offcpu", "-p", str(pids[0]))
        elif _is_herd(stays):
            text = (
                f"wakes up to {threads_of(stays)} threads at once, which then queue for the mutex "
                f"that {evidence.spell(where)} takes (a thundering herd)"
            )
            times = sum(stay.times for stay in stays) / evidence.elapsed_s
            support = f"{times:.0f} times a second: a broadcast where one thread would do"
        else:
            many = count_threads(stays, "wait") if threads_of(stays) > 1 else "waits"
            text = f"{many} for the lock that {evidence.spell(where)} takes"
            support = _holder(evidence, stays, where)
            if _are_goroutines(stays) and _is_still(evidence, pids):
                support += "; nothing moves: a deadlock, it seems"
            if any(map(is_java, stays[0].user)) or _are_goroutines(stays):  # no futexes
                command = ("offcpu", "-p", str(pids[0]))
        source = evidence.source(where)
        name = evidence.process(pids[0]).comm
        yield Finding("lock-convoy", name, pids, cost, text, (support,), command, own=source)


def deadlocks(evidence: Evidence) -> Iterator[Finding]:
    """Threads wait all the time for locks: of each other, or of nobody who gives them back."""
    stuck: dict[int, list[list[Stay]]] = defaultdict(list)
    for stays in _places(evidence):
        endless = [stay for stay in stays if _is_endless(evidence, stay)]
        if (
            endless
            and _is_stuck(evidence, stays)
            and evidence.rate(stays) >= _LEAST
            and stays[0].kind == "lock"
        ):
            for pid in {stay.pid for stay in endless}:
                stuck[pid].append([stay for stay in endless if stay.pid == pid])
    for pid, places in stuck.items():
        places.sort(key=len)
        ring = _ring(evidence, pid)
        cost = sum(evidence.rate(stays) for stays in places)
        text, support = (
            _ring_text(evidence, ring, places) if ring else _stuck_text(evidence, places)
        )
        yield Finding(
            "deadlock",
            evidence.process(pid).comm,
            (pid,),
            cost,
            text,
            (support,),
            ("dump", str(pid)),
            own=evidence.source(_taker(places[0])),
        )


def shared_semaphores(evidence: Evidence) -> Iterator[Finding]:
    """Processes take turns for a System V semaphore: who holds it is one of them."""
    groups: dict[tuple[tuple[str, str], int], list[Stay]] = defaultdict(list)
    for stay in evidence.stays:
        if stay.kind == "semaphore" and stay.call in _SEMAPHORE_CALLS and not stay.is_work:
            groups[evidence.family(stay.pid), stay.argument].append(stay)
    for stays in groups.values():
        cost, tids = evidence.rate(stays), {stay.tid for stay in stays}
        does = [
            stay
            for tid in tids
            for stay in evidence.by_thread[tid]
            if stay.kind not in ("semaphore", "queue")
        ]
        free_s = seconds_of(stay for stay in does if stay.kind in _FREE)
        is_given = any(tids & evidence.wakers.get(tid, {}).keys() for tid in tids)
        takes_turns = is_given and free_s < _MOSTLY_FREE * seconds_of(does)
        if cost < _LEAST_OF_SEMAPHORES or len(tids) < 2 or not takes_turns:  # noqa: PLR2004
            continue
        pids, activity = chief(stays), describe_activity(evidence, does)
        yield Finding(
            *("lock-convoy", evidence.process(pids[0]).comm, pids, cost),
            f"{count_threads(stays, 'wait')} for a System V semaphore (semop) that they give to "
            "each other",
            (f"who has it {activity}", evidence.process(pids[0]).command),
            ("offcpu", "-p", str(pids[0])),
        )


def _places(evidence: Evidence) -> list[list[Stay]]:
    """Waits for locks, by program and by the function that takes the lock."""
    return by_function(evidence, evidence.work(*_KINDS), lambda stay: stay.kind)


def _taker(stays: list[Stay]) -> StackFrame | None:
    return next((stay.own for stay in stays if stay.own is not None), None)


def _is_endless(evidence: Evidence, stay: Stay) -> bool:
    return stay.is_open and stay.seconds > _ALL_THE_TIME * evidence.elapsed_s


def _is_stuck(evidence: Evidence, stays: list[Stay]) -> bool:
    """Return True if nobody gets the lock: a ring of owners, or no turn in the whole time.

    Unfair locks keep some threads waiting for ever while others take turns: that is a convoy.
    """
    endless = [stay for stay in stays if _is_endless(evidence, stay)]
    if not endless:
        return False
    if any(_ring(evidence, pid) for pid in {stay.pid for stay in endless}):
        return True
    if any(not stay.is_open for stay in stays):
        return False
    where, waiting = _taker(stays), {stay.tid for stay in stays}
    return not any(
        stay.tid not in waiting and stay.kind != "lock" and _is_below(stay, where)
        for pid in {stay.pid for stay in endless}
        for stay in evidence.by_process.get(pid, ())
    )


def _is_herd(stays: list[Stay]) -> bool:
    relocking = [s for s in stays if any("mutex_cond_lock" in f.name for f in s.user)]
    return threads_of(stays) > _HERD and seconds_of(relocking) > 0.5 * seconds_of(stays)


def _file_lock(evidence: Evidence, stays: list[Stay]) -> tuple[str, str]:
    where, pids = _taker(stays), {stay.pid for stay in stays}
    paths = Counter(
        path for stay in stays if (path := evidence.path_of(stay.pid, stay.argument & 0xFFFFFFFF))
    )
    path = paths.most_common(1)[0][0] if paths else ""
    text = f"{count_threads(stays, 'wait')} for the lock of a file (flock)"
    text += f": {path}" if path else ""
    text += f", in {evidence.spell(where)}" if where else ""
    holders = [
        pid
        for pid, links in evidence.facts.descriptors.items()
        if path and path in links.values() and pid not in pids
    ]
    names = ", ".join(map(evidence.name, holders[:2]))
    return text, f"also open in {names}" if names else f"{len(pids)} processes take turns"


# Who holds it


def _holder(evidence: Evidence, stays: list[Stay], where: StackFrame | None) -> str:
    """The activity of who holds the lock meanwhile: by its owner word, or as who woke a waiter."""
    owners: Counter[int] = Counter()
    wakers: Counter[int] = Counter()
    for tid in {stay.tid for stay in stays}:
        wakers.update(evidence.wakers.get(tid, {}))
    for stay in stays:
        for one in evidence.sums.get((stay.tid, stay.call, stay.argument), ()):
            if one.owner and evidence.process_of_thread.get(one.owner) == stay.pid:
                owners[one.owner] += round(1e9 * one.seconds)
    does = [
        stay
        for tid in owners or wakers
        for stay in evidence.by_thread.get(tid, ())
        if stay.kind not in ("lock", "queue") and _is_below(stay, where)
    ]
    if _are_goroutines(stays):
        does = _inside(evidence, stays[0].pid, where)
    text = describe_activity(evidence, does)
    if text:
        return f"its holder {text}"
    text = describe_activity(evidence, _of_others(evidence, stays, wakers))
    if text:
        return f"who gives it to them {text}"
    holder = next(iter(owners), 0)
    return f"its holder is thread {holder}" if holder else "its holder did not show"


def _are_goroutines(stays: list[Stay]) -> bool:
    return all(stay.tid < 0 for stay in stays)


def _is_still(evidence: Evidence, pids: tuple[int, ...]) -> bool:
    """Return True for processes that neither run nor are woken: a lock that changes hands does."""
    ended = sum(one.times for pid in pids for one in evidence.waits_of.get(pid, ()))
    cpus = sum(evidence.cpu_of.get(pid, 0.0) for pid in pids)
    return ended < _STILL * evidence.elapsed_s and cpus < _STILL_CPUS


def _inside(evidence: Evidence, pid: int, where: StackFrame | None) -> list[Stay]:
    """The activity of goroutines that have got beyond a mutex: one of them holds it."""
    waiting = [stay for stay in evidence.goroutines if stay.pid == pid]
    running = [stay for stay in evidence.by_process.get(pid, ()) if stay.kind == "cpu"]
    return [
        stay
        for stay in (*waiting, *running)
        if stay.kind not in ("lock", "network") and _is_below(stay, where)
    ]


def _of_others(evidence: Evidence, stays: list[Stay], wakers: Counter[int]) -> list[Stay]:
    """The work of the thread that wakes most of them, and never waits in their place: a writer."""
    waiting = {stay.tid for stay in stays}
    waker = next((tid for tid, _ in wakers.most_common() if tid), 0)
    if waker in waiting:
        return []
    return [
        stay
        for stay in evidence.by_thread.get(waker, ())
        if stay.own is not None and stay.kind not in ("lock", "queue")
    ]


def _is_below(stay: Stay, where: StackFrame | None) -> bool:
    if where is None:
        return False
    return any(f.name == where.name and f.module == where.module for f in stay.user)


def _ring(evidence: Evidence, pid: int) -> list[int]:
    """Return threads that wait for a lock of the next one, the last for one of the first."""
    owner: dict[int, int] = {}
    held = evidence.facts.lock_holders.get(pid, {})
    for blocked in evidence.facts.blocked:
        if blocked.pid != pid or not blocked.call.startswith("futex"):
            continue
        word = blocked.words[2] if blocked.words else 0
        if word and word != blocked.tid and evidence.process_of_thread.get(word) == pid:
            owner[blocked.tid] = word
        if blocked.arguments[0] in held:
            owner[blocked.tid] = held[blocked.arguments[0]]
    return find_ring(owner)


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
    threads = sum(map(threads_of, places))
    word = "deadlock, it seems" if len(places) > 1 else "a lock that nobody gives back"
    names = ", ".join(evidence.spell(_taker(stays)) for stays in places)
    text = f"{word}: {threads} threads wait all the time for locks, in {names}"
    return text, "their owners could not be read"
