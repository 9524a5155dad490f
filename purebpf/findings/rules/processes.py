"""Programs that are started again and again, and children that nobody waits for."""

from __future__ import annotations

import re
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay
from purebpf.findings.facts import End, Process, Start
from purebpf.findings.finding import Finding
from purebpf.findings.ownership import is_interpreter
from purebpf.findings.rules.cpu import busiest_function
from purebpf.findings.words import call_site, describe_activity

__all__ = [
    "costly_forks",
    "crashes",
    "restarted_workers",
    "short_programs",
    "started_programs",
    "started_threads",
    "zombies",
]

_PROGRAMS, _FORKS = 20.0, 50.0
"""A second."""
_RESTARTS, _LOADING = 0.5, 0.1
"""Workers that a server starts a second, and the CPUs that those use which have ended."""
_KILLS: dict[int, str] = {
    signal.SIGKILL: "SIGKILL",
    signal.SIGABRT: "SIGABRT",
    signal.SIGTERM: "SIGTERM",
}
_CRASHES: dict[int, str] = {
    signal.SIGSEGV: "SIGSEGV, an access to memory that is not there",
    signal.SIGBUS: "SIGBUS, an access to a mapped file or memory that is not there",
    signal.SIGABRT: "SIGABRT, abort(3) or an exception that nobody catches",
    signal.SIGFPE: "SIGFPE, a division by zero",
    signal.SIGILL: "SIGILL, no instruction",
    signal.SIGKILL: "SIGKILL",
    signal.SIGSYS: "SIGSYS, a system call that seccomp forbids",
    signal.SIGXCPU: "SIGXCPU, the limit of CPU time (ulimit -t)",
    signal.SIGXFSZ: "SIGXFSZ, the limit of a file's size (ulimit -f)",
}
"""Signals that end a process because of what it does itself."""
_ASKERS = frozenset(
    {
        *("[", "test", "false", "grep", "egrep", "fgrep", "zgrep", "expr", "cmp", "diff", "pgrep"),
        *("pidof", "pkill", "kill", "mountpoint", "which", "timeout", "sh", "bash", "dash"),
        *("systemctl", "pg_isready", "flock", "git", "getent", "id", "ls", "read"),
        *("readlink", "realpath", "stat", "ps", "tty", "lsof", "fuser"),
    }
)
"""Programs whose status is an answer, or a part of a script."""
_RESTARTS_OF_CRASHED, _MOSTLY_FAIL = 0.25, 0.7
"""A second; the part of the programs of one parent that ends so."""
_SEVERAL = 3
_THREADS, _THREAD_S = 500.0, 5e-5
"""Threads started a second, and their cost."""
_CLONES, _RETURNS = frozenset({"clone", "clone3"}), 2
"""Calls that start threads and processes return in both."""
_SCRIPT = re.compile(r"\.[a-z]{1,4}$")
_ZOMBIES = 20
_COPIES = re.compile(r"copy_(page_range|p[a-z0-9]{2}_range|mm)|dup_mm")
_COPYING, _LARGE = 0.02, 64 << 20
"""CPUs that copy page tables, and bytes of a process whose forks cost that."""
_SHORT_CPUS = 0.2
"""CPUs of the programs that one parent starts now and then."""
_EACH_S = 0.001
"""A program costs at least so much."""


def started_programs(evidence: Evidence) -> Iterator[Finding]:
    """Many short-lived programs are started by one parent, or by its short-lived children."""
    programs: dict[str, Counter[str]] = defaultdict(Counter)
    forks: Counter[str] = Counter()
    parents: dict[str, Counter[int]] = defaultdict(Counter)
    for start in evidence.facts.starts:
        comm = _parent_name(evidence, start)
        parents[comm][start.parent] += start.times
        if start.is_fork:
            forks[comm] += start.times
        else:
            programs[comm][start.comm] += start.times
    for comm, started in parents.items():
        executed = programs[comm].total() / evidence.elapsed_s
        forked = forks[comm] / evidence.elapsed_s
        if executed < _PROGRAMS and forked < _FORKS:
            continue
        pid = _living(evidence, comm, started)
        cost = max(_cpu_of_children(evidence, pid), executed * _EACH_S, forked * _EACH_S / 2)
        script = _script(evidence, pid)
        names = ", ".join(
            f"{name} {times / evidence.elapsed_s:.0f}"
            for name, times in programs[comm].most_common(4)
        )
        kind = "programs" if executed >= forked / 3 else "processes"
        rate = executed if kind == "programs" else forked
        yield Finding(
            *("exec-storm", comm, (pid,) if pid else tuple(started), cost),
            f"starts {rate:.0f} {kind} a second{f' in {script}' if script else ''}"
            + (f": {names}" if names else ""),
            (f"their CPU time: {cost:.2f} s a second; {forked:.0f} forks",),
            ("exec", "-p", str(pid), "--tree") if pid else ("exec",),
        )


def short_programs(evidence: Evidence) -> Iterator[Finding]:
    """One parent starts costly programs again and again, which are gone before they are looked at.

    An agent that asks a JVM for its threads is one, and a build is another: it is CPU time.
    """
    gone: dict[str, list[Stay]] = defaultdict(list)
    for pid, stays in evidence.by_process.items():
        if pid not in evidence.processes:
            for comm in {stay.comm for stay in stays}:
                gone[comm] += [stay for stay in stays if stay.kind == "cpu"]
    parents: dict[int, Counter[str]] = defaultdict(Counter)
    for start in evidence.facts.starts:
        if not start.is_fork and not evidence.process(start.parent).is_gone:
            parents[start.parent][start.comm] += start.times
    for pid, started in parents.items():
        process, whole = evidence.process(pid), started.total()
        cost = evidence.rate({id(stay): stay for comm in started for stay in gone[comm]}.values())
        cost = min(cost, process.children_cpu_s / evidence.elapsed_s)
        if cost < _SHORT_CPUS or not _SEVERAL <= whole < _PROGRAMS * evidence.elapsed_s:
            continue
        names = ", ".join(
            f"{name} {times / evidence.elapsed_s:.1f}" for name, times in started.most_common(3)
        )
        yield Finding(
            *("cpu", process.comm, (pid,), cost),
            f"starts programs that use {cost:.2f} CPUs and soon end, a second: {names}",
            (process.command,),
            ("exec", "-p", str(pid), "--tree"),
            is_busy=not evidence.connections.is_service((pid,)),
        )


def _parent_name(evidence: Evidence, start: Start) -> str:
    """Return the name of the parent, which may have started programs in threads of other names."""
    process = evidence.processes.get(start.parent)
    return start.parent_comm if process is None or process.is_new else process.comm


def restarted_workers(evidence: Evidence) -> Iterator[Finding]:
    """Workers of a prefork server end after some requests, and the next ones have to load first.

    Servers that start a process for each connection do not count: such a process does not listen.
    """
    forked = Counter({one.parent: one.times for one in evidence.facts.starts if one.is_fork})
    for pid, times in forked.items():
        process, rate = evidence.process(pid), times / evidence.elapsed_s
        cost = process.children_cpu_s / evidence.elapsed_s
        if rate < _RESTARTS or cost < _LOADING or not _shares_its_port(evidence, pid):
            continue
        killed, way = _kills(evidence, pid)
        if killed:
            yield Finding(
                *("exec-storm", process.comm, (pid,), max(cost, rate)),
                f"starts {rate:.1f} workers a second, and kills them again ({killed})"
                + (f", while each {way}" if way else ""),
                (process.command,),
                ("exec", "-p", str(pid), "--tree"),
            )
            continue
        young = [stay for stay in evidence.cpu if _is_young(evidence, stay, process)]
        where = busiest_function(evidence, young) if young else ""
        yield Finding(
            *("exec-storm", process.comm, (pid,), cost),
            f"starts {rate:.1f} workers a second, which soon end again: they use {cost:.2f} CPUs"
            + (f", in {where}" if where else ""),
            (process.command,),
            ("exec", "-p", str(pid), "--tree"),
        )


def _kills(evidence: Evidence, pid: int) -> tuple[str, str]:
    """The signals that a server kills its workers by, and what these do, in clauses."""
    sent: Counter[int] = Counter()
    killed: set[int] = set()
    for one in evidence.facts.signals:
        if one.sender == pid and one.signal in _KILLS:
            sent[one.signal] += one.times
            killed.add(one.receiver)
    if len(killed) < _SEVERAL:
        return "", ""
    names = ", ".join(f"{_KILLS[number]} {times} times" for number, times in sent.most_common(2))
    stays = [
        stay
        for worker in killed
        for stay in evidence.by_process.get(worker, ())
        if stay.own is not None and stay.kind not in ("cpu", "queue", "epoll", "accept")
    ]
    return names, describe_activity(evidence, stays)


def crashes(evidence: Evidence) -> Iterator[Finding]:
    """A program crashes or ends with an error, again and again, and its parent starts the next."""
    groups: dict[tuple[str, str], list[End]] = defaultdict(list)
    for one in evidence.facts.ends:
        if _is_failure(one):
            groups[one.parent_comm, one.comm].append(one)
    for (_, comm), ends in groups.items():
        times = sum(one.times for one in ends)
        started = _times_started(evidence, ends)
        rate = times / evidence.elapsed_s
        if times < _SEVERAL or rate < _RESTARTS_OF_CRASHED or times < _MOSTLY_FAIL * started:
            continue
        parent = max(ends, key=lambda one: one.times).parent
        codes = Counter(one.code for one in ends for _ in range(one.times))
        code = codes.most_common(1)[0][0]
        parents = {one.parent for one in ends}
        living = tuple(
            pid
            for pid, one in evidence.processes.items()
            if one.comm == comm and one.ppid in parents
        )
        known = evidence.process(parent).pid
        if code == signal.SIGKILL and not known:
            continue  # nobody starts it again: a script that ends its programs
        script = _script(evidence, parent)
        by = f"{evidence.name(parent)}{f', {script},' if script else ''}" if known else ""
        yield Finding(
            *("crashes", comm, (*living, *((parent,) if known else ()))),
            min(1.0, 0.2 + rate / 2),
            f"{_ending(code)} {rate:.1f} times a second"
            + (f"; {by} starts it again" if by else ""),
            (
                evidence.process(living[0]).command if living else "",
                evidence.process(parent).command,
            ),
            ("exec", "-p", str(parent), "--tree") if known else ("exec",),
        )


def _is_failure(end: End) -> bool:
    """Return True for a crash, and for an error of a program that does not say "no" by it."""
    number = end.code & 0x7F
    return number in _CRASHES if number else end.comm not in _ASKERS


def _times_started(evidence: Evidence, ends: list[End]) -> int:
    """Return how often the parents of these processes started programs of that name."""
    parents, comm = {one.parent for one in ends}, ends[0].comm
    starts = [one for one in evidence.facts.starts if one.parent in parents]
    executed = sum(one.times for one in starts if not one.is_fork and one.comm == comm)
    return executed or sum(one.times for one in starts if one.is_fork)


def _ending(code: int) -> str:
    number, status = code & 0x7F, code >> 8 & 0xFF
    if not number:
        return f"ends with an error (status {status})"
    if number == signal.SIGKILL:
        return "is killed (SIGKILL)"
    return f"crashes ({_CRASHES[number]})"


def _is_young(evidence: Evidence, stay: Stay, parent: Process) -> bool:
    """Return True for a child that was started meanwhile; of ended ones, only names are known."""
    process = evidence.processes.get(stay.pid)
    if process is None:
        return stay.comm == parent.comm
    return process.is_new and process.ppid == parent.pid


def _shares_its_port(evidence: Evidence, pid: int) -> bool:
    """Return True if children of a process also accept connections on its port."""
    return any(
        pid in listening and any(evidence.process(other).ppid == pid for other in listening)
        for listening in evidence.connections.listeners.values()
    )


def costly_forks(evidence: Evidence) -> Iterator[Finding]:
    """A large process forks: the kernel copies its page tables, and each page at the next write."""
    forked: Counter[int] = Counter()
    for start in evidence.facts.starts:
        if start.is_fork:
            forked[start.parent] += start.times
    for pid, times in forked.items():
        copying = [
            stay
            for stay in evidence.by_process.get(pid, ())
            if stay.kind == "cpu" and any(_COPIES.match(name) for name in stay.kernel)
        ]
        cost, process = evidence.rate(copying), evidence.process(pid)
        memory = max(process.anon, default=0)
        if cost < _COPYING or memory < _LARGE:
            continue
        function = call_site(evidence, (pid,), "ork") or call_site(evidence, (pid,), "clone")
        yield Finding(
            *("costly-fork", process.comm, (pid,), cost),
            f"spends {cost:.2f} CPUs on copying its page tables: it forks {times} times "
            f"({times / evidence.elapsed_s:.1f} a second) with {memory >> 20} MiB of memory",
            (
                f"{1000 * cost * evidence.elapsed_s / times:.0f} ms each",
                f"in {function}" if function else "",
            ),
            ("profile", "-p", str(pid)),
        )


def started_threads(evidence: Evidence) -> Iterator[Finding]:
    """A program starts a thread for each small piece of work."""
    forked: Counter[int] = Counter()
    for start in evidence.facts.starts:
        if start.is_fork:
            forked[start.parent] += start.times
    for pid, counts in evidence.calls.items():
        clones = sum(one.times for one in counts if one.call in _CLONES and not one.error)
        rate = (clones / _RETURNS - forked[pid]) / evidence.elapsed_s
        if rate < _THREADS or pid not in evidence.processes:
            continue
        function = call_site(evidence, (pid,), "clone")
        yield Finding(
            *("thread-storm", evidence.process(pid).comm, (pid,)),
            max(min(1.0, rate * _THREAD_S), 0.9 * evidence.cpu_of[pid]),
            f"starts {rate:.0f} threads a second, which end at once"
            + (f", in {function}" if function else ""),
            (f"it has {evidence.process(pid).threads} threads",),
            ("summary", "-p", str(pid)),
        )


def _living(evidence: Evidence, comm: str, started: Counter[int]) -> int:
    """The parent that lives on and has waited for most CPU time; 0: it did not show."""
    living = [
        process
        for process in evidence.facts.processes
        if process.comm == comm and not process.is_gone and not process.is_new
    ]
    best = max(living, key=lambda one: (one.children_cpu_s, started[one.pid]), default=None)
    return best.pid if best else 0


def _cpu_of_children(evidence: Evidence, pid: int) -> float:
    """Return the CPUs of processes that are gone, at most the CPU time of its children."""
    gone = [stay for stay in evidence.cpu if stay.pid not in evidence.processes]
    own = evidence.process(pid).children_cpu_s / evidence.elapsed_s if pid else 0.0
    return max(own, evidence.rate(gone) if not own else 0.0)


def _script(evidence: Evidence, pid: int) -> str:
    process = evidence.process(pid)
    if not pid or not is_interpreter(process.exe):
        return ""
    names = [word for word in process.command.split()[1:] if not word.startswith("-")]
    files = (name for name in names if _SCRIPT.search(name))
    return next(files, next(iter(names), "")).rpartition("/")[2]


def zombies(evidence: Evidence) -> Iterator[Finding]:
    """Children that ended and stay, because their parent does not wait for them."""
    ended = Counter(one.ppid for one in evidence.facts.processes if one.state == "Z")
    for parent, count in ended.items():
        if count < _ZOMBIES or parent not in evidence.processes:
            continue
        process = evidence.process(parent)
        names = Counter(
            one.comm for one in evidence.facts.processes if one.state == "Z" and one.ppid == parent
        )
        functions = Counter(
            evidence.spell(stay.own) for stay in evidence.by_process.get(parent, ()) if stay.own
        )
        where = f"it is in {functions.most_common(1)[0][0]}" if functions else ""
        yield Finding(
            *("zombies", process.comm, (parent,), 0.1 + count / 1000),
            f"has {count} zombies: children ({names.most_common(1)[0][0]}) that ended and that it "
            "does not wait for",
            (where,),
            ("exec", "-p", str(parent), "--tree"),
        )
