"""Limits of cgroups, and CPUs that others have."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import Cgroup, ThreadTime
from purebpf.findings.finding import Finding
from purebpf.findings.words import share

__all__ = ["memory_limits", "pinned_programs", "queued_processes", "throttled_cgroups"]

_PERIODS, _THROTTLED = 10, 0.1
_HITS, _SLOWED = 10.0, 0.1
"""A second; seconds a second that threads wait because of memory.high."""
_QUEUED = 0.05
_VICTIMS, _HOGS = 6, 20
_NOBODY_WAITS = 0.1
"""The weight of the time of a program that nobody is seen to wait for."""
_WANTED, _PINNED = 0.3, 0.3
"""The part of the time that a thread ran or was ready; seconds a second that such threads wait."""
_HOG = 0.5
"""CPUs of who takes them from others."""
_PINNED_HOG = 0.25
"""The same where both may use one CPU only."""


def throttled_cgroups(evidence: Evidence) -> Iterator[Finding]:
    """A cgroup is stopped by its CPU quota while it has work."""
    for cgroup in evidence.facts.cgroups:
        if cgroup.periods < _PERIODS or cgroup.throttled < _THROTTLED * cgroup.periods:
            continue
        pids = _members(evidence, cgroup)
        name = _tail(cgroup)
        cost = max(cgroup.throttled_s / evidence.elapsed_s, cgroup.throttled / cgroup.periods * 0.5)
        limit = f"cpu.max of {name} allows {cgroup.quota_cpus:.2f} CPUs"
        own = _busiest_function(evidence, pids)
        yield Finding(
            "cpu-throttling",
            evidence.process(pids[0]).comm if pids else name,
            pids,
            cost,
            "is throttled by its cgroup's CPU limit in "
            f"{share(cgroup.throttled, cgroup.periods)} of the periods",
            (
                limit,
                f"its CPU time goes to {own}" if own else "",
                f"throttled {cgroup.throttled_s / evidence.elapsed_s:.2f} s a second",
            ),
            ("wall", "-p", str(pids[0])) if pids else ("top",),
            place=name,
        )


def memory_limits(evidence: Evidence) -> Iterator[Finding]:
    """Find cgroups that run into their memory limit, and whose pages are reclaimed again and
    again.
    """
    for cgroup in evidence.facts.cgroups:
        pids, name = _members(evidence, cgroup), _tail(cgroup)
        waited = evidence.rate(stay for stay in evidence.work("memory-limit") if stay.pid in pids)
        text, limit = _limit(evidence, cgroup, waited)
        if not text:
            continue
        own = _busiest_function(evidence, pids)
        yield Finding(
            "memory-limit",
            evidence.process(pids[0]).comm if pids else name,
            pids,
            max(0.5, waited),
            text,
            (limit, f"it works in {own}" if own else ""),
            ("mem", "--show", "faults", "-p", str(pids[0])) if pids else ("top",),
            place=name,
        )


def _limit(evidence: Evidence, cgroup: Cgroup, waited: float) -> tuple[str, str]:
    """Return the incident and the limit: the hard one, or the one that slows processes down.

    Processes above memory.high sleep at each allocation, for up to two seconds, so that they meet
    the limit seldom.
    """
    rate, slowed = cgroup.memory_hits / evidence.elapsed_s, cgroup.high_hits / evidence.elapsed_s
    name, used = _tail(cgroup), cgroup.memory_used >> 20
    if rate >= _HITS or cgroup.oom_kills:
        text = f"hits its cgroup's memory limit {rate:.0f} times a second"
        if cgroup.oom_kills:
            text += f", and {cgroup.oom_kills} processes were killed for it (OOM)"
        return text, f"memory.max of {name} is {cgroup.memory_limit >> 20} MiB"
    if slowed >= _HITS or (cgroup.high_hits and waited >= _SLOWED):
        text = f"is slowed down by its cgroup's memory.high {slowed:.0f} times a second"
        text += f": its threads wait {waited:.2f} s a second for that" if waited else ""
        return text, f"memory.high of {name} is {cgroup.memory_high >> 20} MiB, in use are {used}"
    return "", ""


def queued_processes(evidence: Evidence) -> Iterator[Finding]:
    """A program waits in the run queue while another one uses the CPUs."""
    queued: dict[tuple[str, str], dict[int, float]] = defaultdict(lambda: defaultdict(float))
    throttled = {pid for finding in throttled_cgroups(evidence) for pid in finding.pids}
    for thread in evidence.facts.threads:
        if thread.pid in evidence.processes and thread.pid not in throttled:
            family = evidence.family(thread.pid)
            queued[family][thread.pid] += thread.queued_s / evidence.elapsed_s
    heaviest = sorted(queued.items(), key=lambda item: -sum(item[1].values()))
    pinned = [
        item
        for item in heaviest[_VICTIMS:]
        if any(evidence.process(pid).allowed for pid in item[1])
    ]
    for family, by_pid in (*heaviest[:_VICTIMS], *pinned[:_VICTIMS]):
        finding = _queued(evidence, family, by_pid)
        if finding is not None:
            yield finding


def _queued(
    evidence: Evidence, family: tuple[str, str], by_pid: dict[int, float]
) -> Finding | None:
    cost, used = sum(by_pid.values()), sum(evidence.cpu_of[pid] for pid in by_pid)
    hogs = [
        (other, cpus)
        for other, cpus in _by_family(evidence)
        if evidence.family(other) != family and other in evidence.processes
    ]
    least, near = _HOG, _on_the_same_cpus(evidence, max(by_pid, key=by_pid.__getitem__), hogs)
    if near:
        least, hogs = _PINNED_HOG, near
    if cost < max(_QUEUED, 0.5 * used) or not hogs or hogs[0][1] < max(least, used):
        return None
    hog, cpus = hogs[0]
    where = _busiest_function(evidence, evidence.pids_of(evidence.family(hog)))
    pids = tuple(sorted(by_pid, key=lambda pid: -by_pid[pid]))
    own = _busiest_function(evidence, pids)
    return Finding(
        *("run-queue", evidence.process(pids[0]).comm, pids, cost),
        f"waits for a CPU {cost:.2f} s a second (run queue); {evidence.process(hog).comm} takes it",
        (
            f"{evidence.name(hog)} uses {cpus:.2f} CPUs" + (f" in {where}" if where else ""),
            f"its own {used:.2f} CPUs go to {own}" if own else "",
        ),
        ("top", "--by", "process"),
        place=evidence.name(hog),
    )


def pinned_programs(evidence: Evidence) -> Iterator[Finding]:
    """A program wants more CPUs than it may use: taskset, a cpuset, sched_setaffinity(2).

    Workers that each have a CPU of their own are no such program.
    """
    wanting: dict[tuple[tuple[str, str], tuple[int, ...]], list[ThreadTime]] = defaultdict(list)
    for thread in evidence.facts.threads:
        allowed = evidence.process(thread.pid).allowed
        if allowed and thread.cpu_s + thread.queued_s > _WANTED * evidence.elapsed_s:
            wanting[evidence.family(thread.pid), allowed].append(thread)
    for (_, allowed), threads in wanting.items():
        waited = sum(thread.queued_s for thread in threads) / evidence.elapsed_s
        if len(threads) > len(allowed) and waited >= _PINNED:
            yield _pinned(evidence, allowed, threads, waited)


def _pinned(
    evidence: Evidence, allowed: tuple[int, ...], threads: list[ThreadTime], waited: float
) -> Finding:
    times: Counter[int] = Counter()
    for thread in threads:
        times[thread.pid] += round(1e6 * (thread.cpu_s + thread.queued_s))
    pids = tuple(pid for pid, _ in times.most_common())
    cpus, own = ", ".join(map(str, allowed)), _busiest_function(evidence, pids)
    who = f"{len(pids)} processes" if len(pids) > 1 else f"{len(threads)} threads"
    weight = 1.0 if evidence.connections.has_clients(pids) else _NOBODY_WAITS
    victim, lost = _neighbour(evidence, allowed, pids[0])
    return Finding(
        *("affinity", evidence.process(pids[0]).comm, pids, weight * waited + lost),
        f"may run on CPU {cpus} only ({len(allowed)} of {evidence.facts.cpus}; taskset or cpuset): "
        f"{who} wait {waited:.2f} s a second in its run queue",
        (
            f"so does {victim}, {lost:.2f} s a second" if victim else "",
            f"they run {own}" if own else "",
        ),
        ("top", "--by", "thread", "-p", str(pids[0])),
    )


def _neighbour(evidence: Evidence, allowed: tuple[int, ...], pid: int) -> tuple[str, float]:
    """Name the program that waits most for the same CPUs, having no others; seconds a second."""
    lost: dict[tuple[str, str], float] = defaultdict(float)
    first: dict[tuple[str, str], int] = {}
    for thread in evidence.facts.threads:
        others, family = evidence.process(thread.pid).allowed, evidence.family(thread.pid)
        if others and set(allowed).issuperset(others) and family != evidence.family(pid):
            lost[family] += thread.queued_s / evidence.elapsed_s
            first.setdefault(family, thread.pid)
    family, most = max(lost.items(), key=lambda item: item[1], default=(("", ""), 0.0))
    return (evidence.name(first[family]), most) if most >= _QUEUED else ("", 0.0)


def _on_the_same_cpus(
    evidence: Evidence, pid: int, hogs: list[tuple[int, float]]
) -> list[tuple[int, float]]:
    """The hogs that may use only CPUs which a process has to share with them."""
    allowed = set(evidence.process(pid).allowed)
    return [
        (hog, cpus)
        for hog, cpus in hogs
        if evidence.process(hog).allowed and allowed.issuperset(evidence.process(hog).allowed)
    ]


def _by_family(evidence: Evidence) -> list[tuple[int, float]]:
    """The busiest process of each family, with the CPUs of all of it."""
    total: dict[tuple[str, str], float] = defaultdict(float)
    for pid, cpus in evidence.cpu_of.items():
        total[evidence.family(pid)] += cpus
    return [
        (max(evidence.pids_of(family) or (0,), key=lambda pid: evidence.cpu_of[pid]), cpus)
        for family, cpus in sorted(total.items(), key=lambda item: -item[1])[:_HOGS]
    ]


def _busiest_function(evidence: Evidence, pids: tuple[int, ...]) -> str:
    weights: Counter[str] = Counter()
    for stay in evidence.cpu:
        if stay.pid in pids and stay.own is not None:
            weights[evidence.spell(stay.own)] += round(1e6 * stay.seconds)
    return weights.most_common(1)[0][0] if weights else ""


def _tail(cgroup: Cgroup) -> str:
    return cgroup.path.rstrip("/").rpartition("/")[2]


def _members(evidence: Evidence, cgroup: Cgroup) -> tuple[int, ...]:
    """The processes in a cgroup or below it, the one with most CPU time first."""
    ending = f"/{_tail(cgroup)}"
    members = [
        process
        for process in evidence.facts.processes
        if any(
            line.endswith(ending) or f"{ending}/" in line for line in process.cgroup.splitlines()
        )
    ]
    return tuple(one.pid for one in sorted(members, key=lambda one: (one.is_gone, -one.cpu_s)))
