"""Programs that try for a lock file, or look for a file, again and again, and sleep in between."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import CallCount, StackFrame
from purebpf.findings.finding import Finding
from purebpf.findings.rules.call_groups import main_pid
from purebpf.tuples import NamedTuple

__all__ = ["polled_files"]


class _Attempt(NamedTuple):
    """Calls that fail with some errors because of somebody else."""

    calls: frozenset[str]
    errors: frozenset[int]
    verb: str
    reason: str


_ATTEMPTS = (
    _Attempt(
        frozenset({"open", "openat", "mkdir", "mkdirat", "link", "linkat", "symlink", "symlinkat"}),
        frozenset({errno.EEXIST}),
        "tries to create",
        "it exists (EEXIST): a lock file, it seems, which another one has",
    ),
    _Attempt(
        frozenset({"flock", "fcntl"}),
        frozenset({errno.EAGAIN, errno.EACCES}),
        "tries to lock",
        "another one has the lock (EAGAIN)",
    ),
    _Attempt(
        frozenset(
            {"open", "openat", "stat", "newfstatat", "statx", "lstat", "access", "faccessat2"}
        ),
        frozenset({errno.ENOENT}),
        "looks for",
        "it does not exist (ENOENT)",
    ),
)
_LOCKS, _STDERR = frozenset({"flock", "fcntl"}), 2
_NO_FILES = ("/dev/", "/proc/", "/sys/", "/usr/")
_RATE, _MOSTLY = 5.0, 0.5
_SLEEPS = frozenset({"nanosleep", "clock_nanosleep", "select", "pselect6"})
_AWAKE = 1000.0
"""Attempts a second of a program that does not sleep in between."""
_IN_BETWEEN = frozenset({"sleep", "nap", "poll", "cpu"})


def polled_files(evidence: Evidence) -> Iterator[Finding]:
    """A thread sleeps and tries again instead of waiting for a file or its lock."""
    for attempt in _ATTEMPTS:
        groups: dict[tuple[tuple[str, str], str], list[CallCount]] = {}
        for pid in evidence.calls.keys() & evidence.processes.keys():
            failed = _failures(evidence, pid, attempt)
            path = _path(evidence, pid, attempt, failed)
            if path:
                groups.setdefault((evidence.family(pid), path), []).extend(failed)
        for (family, path), failed in groups.items():
            yield _finding(evidence, attempt, family[0], path, failed)


def _failures(evidence: Evidence, pid: int, attempt: _Attempt) -> list[CallCount]:
    """The failed calls of a process that sleeps after most of them, or never."""
    counts = [one for one in evidence.calls[pid] if one.call in attempt.calls]
    failed = [one for one in counts if one.error in attempt.errors]
    times = sum(one.times for one in failed)
    rate = times / evidence.elapsed_s
    sleeps = evidence.count_calls((pid,), _SLEEPS, 0)
    is_paced = sleeps > _MOSTLY * times or rate > _AWAKE
    is_much = times > _MOSTLY * sum(one.times for one in counts)
    return failed if rate > _RATE and is_paced and is_much else []


def _path(evidence: Evidence, pid: int, attempt: _Attempt, failed: list[CallCount]) -> str:
    """The file that most of the calls are about, or ""."""
    if not failed:
        return ""
    paths = Counter[str]()
    for one in evidence.facts.paths:
        if one.pid == pid and one.call in attempt.calls:
            paths[one.path] += one.times
    if failed[0].call in _LOCKS:
        return _shared_file(evidence, pid) or "a file"
    path, times = paths.most_common(1)[0] if paths else ("", 0)
    return path if times > _MOSTLY * paths.total() else ""


def _shared_file(evidence: Evidence, pid: int) -> str:
    """The only file of a process that others also have open; "" for none or several."""
    links = evidence.facts.descriptors
    mine = {
        link
        for fd, link in links.get(pid, {}).items()
        if fd > _STDERR and link.startswith("/") and not link.startswith(_NO_FILES)
    }
    shared = [
        path for path in mine if any(path in links[one].values() for one in links if one != pid)
    ]
    return shared[0] if len(shared) == 1 else ""


def _finding(
    evidence: Evidence, attempt: _Attempt, name: str, path: str, failed: list[CallCount]
) -> Finding:
    pids = tuple(dict.fromkeys(one.pid for one in failed))
    rate = sum(one.times for one in failed) / evidence.elapsed_s
    call, number = failed[0].call, main_pid(failed)
    cost = sum(_lost(evidence, pid) for pid in pids)
    functions = Counter[StackFrame]()
    for pid in pids:
        for stay in evidence.by_process.get(pid, ()):
            if stay.own is not None and stay.kind in _IN_BETWEEN:
                functions[stay.own] += round(1e6 * stay.seconds)
    own = functions.most_common(1)[0][0] if functions else None
    where = f" in {evidence.spell(own)}" if own else ""
    links = evidence.facts.descriptors
    others = [pid for pid in links if pid not in pids and path in links[pid].values()]
    return Finding(
        *("retries", name, (number, *(pid for pid in pids if pid != number)), cost),
        f"{attempt.verb} {path} again and again{where}: {call} fails {rate:.0f} times a second, "
        f"as {attempt.reason}",
        (
            f"{len(pids)} processes try" if len(pids) > 1 else "",
            f"it is open in {', '.join(map(evidence.name, others[:2]))}" if others else "",
        ),
        ("summary", "-x", "-p", str(number)),
        own=evidence.source(own),
        place=path,
    )


def _lost(evidence: Evidence, pid: int) -> float:
    """Seconds a second that a process sleeps between its attempts, at most by one thread."""
    asleep = sum(one.seconds for one in evidence.waits_of.get(pid, ()) if one.call in _SLEEPS)
    return min(1.0, asleep / evidence.elapsed_s + evidence.cpu_of[pid])
