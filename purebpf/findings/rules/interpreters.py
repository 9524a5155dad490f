"""Locks and collectors of runtimes: Python's GIL, Java's monitors, garbage collection."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator

from purebpf.findings.evidence import Evidence, Stay
from purebpf.findings.facts import JavaMonitor
from purebpf.findings.finding import Finding
from purebpf.findings.gil_waits import python_gil_waits
from purebpf.findings.rings import find_ring
from purebpf.findings.rules.holders import describe_holder, is_below
from purebpf.findings.words import chief, count_threads, describe_activity, share

__all__ = ["garbage_collection", "java_monitors", "python_gil", "ruby_gvl", "ruby_mutexes"]

_LEAST = 0.1
_HOG = 0.3
"""The part of the time that a thread has to run to be the one that keeps the GIL."""
_MORE_QUEUED = 1.5
"""Waits for a CPU, by waits for the GIL, of threads that lose their time to the run queue."""
_COLLECTING_THREADS = re.compile(
    r"(GC Thread|G1 |ZWorker|ZDriver|Shenandoah|ParGC|VM Thread|CMS |Concurrent Mark|Finalizer)"
)
_COLLECTING = re.compile(
    r"runtime\.(gcBgMarkWorker|gcAssist|gcDrain|bgsweep|gcStart)|gc_collect|deduce_unreachable"
    r"|.*Heap::(Scavenge|CollectGarbage|MarkCompact)|.*ScavengerCollector|.*MarkCompactCollector"
    r"|zend_gc_collect|zend_gc_run|gc_marks|gc_sweep"
)

_COLLECTING_MODULE = "<internal:gc>"
"""Methods of Ruby's GC. Debian's library of Ruby names no functions of collections that start
themselves."""


def python_gil(evidence: Evidence) -> Iterator[Finding]:
    """Threads wait for Python's lock while one thread runs all the time."""
    for pid, stays in evidence.by_process.items():
        waits = [stay for stay in stays if stay.kind == "gil"]
        waited_s = python_gil_waits(evidence, pid)
        if not waits and not waited_s:
            continue
        running: Counter[int] = Counter()
        for stay in stays:
            if stay.kind == "cpu":
                running[stay.tid] += round(1e6 * stay.seconds)
        if not running:
            continue
        hog = running.most_common(1)[0][0]
        hog_share = _wanted_cpu(evidence, hog)
        victims = [stay for stay in waits if stay.tid != hog]
        waited_s.pop(hog, None)
        cost = max(evidence.rate(victims), sum(waited_s.values()) / evidence.elapsed_s)
        if cost < _LEAST or hog_share < _HOG:
            continue
        tids = {stay.tid for stay in victims} | set(waited_s)
        if _queued(evidence, tids) > _MORE_QUEUED * cost:
            continue  # whoever has it waits for a CPU, too
        function = _mostly(evidence, [s for s in stays if s.tid == hog and s.kind == "cpu"])
        if not function:
            continue
        waiting = Counter(evidence.spell(stay.own) for stay in victims if stay.own)
        threads = len(tids)
        yield Finding(
            "gil",
            evidence.process(pid).comm,
            (pid,),
            cost,
            f"{threads} thread{'s wait' if threads > 1 else ' waits'} for Python's GIL; "
            f"{function} holds it",
            (
                f"thread {hog} runs {function} {hog_share * 100:.0f} % of the time",
                "waiting: " + ", ".join(name for name, _ in waiting.most_common(2))
                if waiting
                else "",
            ),
            ("lock", "--userspace", "-p", str(pid)),
        )


def _queued(evidence: Evidence, tids: Container[int]) -> float:
    """Return how many of these threads wait for a CPU, in the mean."""
    return sum(one.queued_s for one in evidence.facts.threads if one.tid in tids) / (
        evidence.elapsed_s
    )


def _wanted_cpu(evidence: Evidence, tid: int) -> float:
    """Return the part of the time that a thread ran, or would have run if a CPU had been free."""
    times = (one for one in evidence.facts.threads if one.tid == tid)
    return min(1.0, sum(one.cpu_s + one.queued_s for one in times) / evidence.elapsed_s)


def ruby_gvl(evidence: Evidence) -> Iterator[Finding]:
    """Ruby threads wait for the lock of the interpreter while one of them runs all the time."""
    for pid, waits, cost in _costly_waits(evidence, "ruby-gvl"):
        waiting = {stay.tid for stay in waits}
        running: Counter[int] = Counter()
        for stay in evidence.by_process[pid]:
            if stay.kind == "cpu":
                running[stay.tid] += round(1e6 * stay.seconds)
        hog = running.most_common(1)[0][0] if running else 0
        hog_share = _wanted_cpu(evidence, hog)
        if hog_share < _HOG or not waiting - {hog}:
            continue
        if _queued(evidence, waiting) > _MORE_QUEUED * cost:
            continue
        yield Finding(
            *("gil", evidence.process(pid).comm, (pid,), cost),
            f"{count_threads(waits, 'wait')} for Ruby's global lock (GVL); "
            f"{_thread_name(evidence, hog)} holds it",
            (f"that one wants a CPU {hog_share * 100:.0f} % of the time",),
            ("top", "--by", "thread", "-p", str(pid)),
        )


def _mostly(evidence: Evidence, stays: list[Stay]) -> str:
    weights: Counter[str] = Counter()
    for stay in stays:
        if stay.own is not None:
            weights[evidence.spell(stay.own)] += round(1e6 * stay.seconds)
    return weights.most_common(1)[0][0] if weights else ""


def _costly_waits(evidence: Evidence, kind: str) -> Iterator[tuple[int, list[Stay], float]]:
    """Yield each process whose waits of a kind cost much, with these and their cost."""
    for pid, stays in evidence.by_process.items():
        waits = [stay for stay in stays if stay.kind == kind]
        cost = evidence.rate(waits)
        if cost >= _LEAST:
            yield pid, waits, cost


def java_monitors(evidence: Evidence) -> Iterator[Finding]:
    """Java threads wait to enter a synchronized block."""
    for pid, waits, cost in _costly_waits(evidence, "jvm-monitor"):
        text, support = _monitor_text(evidence, pid, waits)
        ring = _monitor_ring(evidence, pid)
        if ring:
            names = " and ".join(dict.fromkeys(one.class_name or "?" for one in ring))
            text = f"deadlock: {len(ring)} threads wait for monitors of each other, of {names}"
            threads = ", ".join(_thread_name(evidence, one.tid) for one in ring)
            waiting = len({stay.tid for stay in waits}) - len(ring)
            support = threads + (f"; {waiting} more wait behind them" if waiting else "")
        yield Finding(
            "deadlock" if ring else "lock-convoy",
            evidence.process(pid).comm,
            (pid,),
            cost,
            text,
            (support,),
            ("dump", str(pid)),
        )


def _monitor_ring(evidence: Evidence, pid: int) -> list[JavaMonitor]:
    """Return the waits of threads that wait for each other in a ring, or none."""
    wanted = {one.tid: one for one in evidence.facts.monitors if one.pid == pid}
    return [wanted[tid] for tid in find_ring({tid: one.owner for tid, one in wanted.items()})]


def _thread_name(evidence: Evidence, tid: int) -> str:
    named = next((stay.comm for stay in evidence.by_thread.get(tid, ())), "")
    return f'thread {tid} "{named}"' if named else f"thread {tid}"


def _monitor_text(evidence: Evidence, pid: int, waits: list[Stay]) -> tuple[str, str]:
    """Name the monitor that most threads want at the end, and the activity of its owner."""
    threads = count_threads(waits, "wait")
    wanted = [one for one in evidence.facts.monitors if one.pid == pid and one.class_name]
    where = _mostly(evidence, waits)
    where = f" in {where}" if where else ""
    if not wanted:
        return f"{threads} for Java monitors (synchronized locks){where}", ""
    classes = Counter(one.class_name for one in wanted)
    name = classes.most_common(1)[0][0]
    text = f"{threads} for the monitor (lock) of {name}{where}"
    owners = Counter(one.owner for one in wanted if one.class_name == name and one.owner)
    if not owners:
        return text, "its owner did not show"
    owner = owners.most_common(1)[0][0]
    does = [stay for stay in evidence.by_thread.get(owner, ()) if stay.kind != "jvm-monitor"]
    does = [stay for stay in does if stay.kind != "queue"] or does
    inside = next((stay.own for stay in waits if stay.own is not None), None)
    activity = describe_activity(evidence, [s for s in does if is_below(s, inside)] or does)
    thread = _thread_name(evidence, owner)
    return text, f"its owner at the end was {thread}" + (f", which {activity}" if activity else "")


def ruby_mutexes(evidence: Evidence) -> Iterator[Finding]:
    """Ruby threads wait for a Mutex; Ruby names a thread by the line that started it."""
    for pid, waits, cost in _costly_waits(evidence, "ruby-mutex"):
        names = Counter(stay.comm for stay in waits)
        tids = {stay.tid for stay in waits}
        wakers = evidence.wakers_of(waits)
        del wakers[0]
        waker = wakers.most_common(1)[0][0] if wakers else 0
        support = f"{_thread_name(evidence, waker)} wakes them" if waker else ""
        kind, text = "lock-convoy", f"{count_threads(waits, 'wait')} for a lock (Mutex) of Ruby"
        where = next((stay.own for stay in waits if stay.own is not None), None)
        if where is not None:
            text += f" in {_mostly(evidence, waits)}"
            support = describe_holder(evidence, waits, where)
        else:
            text += f", in threads of {', '.join(name for name, _ in names.most_common(3))}"
        if len(tids) > 1 and not waker and all(stay.is_open for stay in waits):
            kind, text = "deadlock", f"deadlock, it seems: {text}"
            support = "nobody gave a lock back all the time"
        yield Finding(
            *(kind, evidence.process(pid).comm, (pid,), cost, text, (support,)),
            ("offcpu", "-p", str(pid)),
            own=evidence.source(where),
        )


def garbage_collection(evidence: Evidence) -> Iterator[Finding]:
    """A runtime spends much of its CPU time on collecting garbage."""
    for pids in _families(evidence):
        stays = [stay for pid in pids for stay in evidence.by_process[pid] if stay.kind == "cpu"]
        collecting = [stay for stay in stays if _collects(stay)]
        cost, whole = evidence.rate(collecting), evidence.rate(stays)
        if cost < _LEAST or cost < 0.25 * whole:
            continue
        pid = chief(collecting)[0]
        own = _mostly(evidence, [stay for stay in stays if stay.own is not None])
        memory = evidence.process(pid).anon[-1:] or (0,)
        names = Counter(re.sub(r"[#\d]+$", "", stay.comm) for stay in collecting)
        yield Finding(
            "gc",
            evidence.process(pid).comm,
            (pid, *(other for other in pids if other != pid)),
            cost,
            f"spends {cost:.2f} CPUs, {share(cost, whole)} of its CPU time, on garbage (GC)",
            (
                f'threads "{names.most_common(1)[0][0]}"; anonymous memory {memory[0] >> 20} MiB',
                f"its own work is mostly in {own}" if own else "",
            ),
            ("top", "--by", "thread", "-p", str(pid)),
        )


def _collects(stay: Stay) -> bool:
    if _COLLECTING_THREADS.match(stay.comm):
        return True
    return any(
        _COLLECTING.match(frame.name) or frame.module == _COLLECTING_MODULE for frame in stay.user
    )


def _families(evidence: Evidence) -> Iterator[tuple[int, ...]]:
    seen = set()
    for stay in evidence.cpu:
        family = evidence.family(stay.pid)
        if family not in seen and stay.pid in evidence.processes:
            seen.add(family)
            yield tuple(pid for pid in evidence.pids_of(family) if pid in evidence.by_process)
