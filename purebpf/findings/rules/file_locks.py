"""Locks of files: the file, the process that holds it, and deadlocks of processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from purebpf.findings.evidence import Evidence, Stay, threads_of
from purebpf.findings.facts import StackFrame
from purebpf.findings.finding import Finding
from purebpf.findings.rings import find_ring
from purebpf.findings.rules.holders import is_endless
from purebpf.findings.words import describe_activity, frame_of

__all__ = ["describe_file_lock", "file_lock_deadlocks", "file_lock_ring"]

_OPENED = 1.0
"""Opens a second of a file that is opened for each turn."""
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})


def file_lock_deadlocks(evidence: Evidence) -> Iterator[Finding]:
    """Find processes that each wait for the lock of a file which the next one holds."""
    stays = [stay for stay in evidence.work("file-lock") if is_endless(evidence, stay)]
    ring = file_lock_ring(evidence, stays)
    if not ring:
        return
    by_pid = {stay.pid: stay for stay in stays}
    mine = [by_pid[pid] for pid in ring]
    others = [pid for pid in by_pid if pid not in ring]
    files = [_file_of(evidence, stay) or "a file" for stay in mine]
    each = "; ".join(
        f"{evidence.name(stay.pid)} waits for {file}"
        for stay, file in zip(mine, files, strict=True)
    )
    own = frame_of(mine)
    where = f", in {own}" if own else ""
    more = f"{len(others)} more {'wait' if len(others) > 1 else 'waits'} behind them"
    yield Finding(
        *("deadlock", evidence.process(ring[0]).comm, (*ring, *others), evidence.rate(stays)),
        f"deadlock: {len(ring)} processes each wait for the lock of a file "
        f"({mine[0].call or 'flock'}) that the next one holds{where}",
        (each, more if others else ""),
        ("offcpu", "-p", str(ring[0])),
        own=own,
    )


def file_lock_ring(evidence: Evidence, stays: Iterable[Stay]) -> list[int]:
    """Return the processes of these waits that wait for each other all the time, or none."""
    waiting = {stay.pid for stay in stays if is_endless(evidence, stay)}
    return find_ring(
        {
            one.pid: one.holder
            for one in evidence.facts.file_locks
            if {one.pid, one.holder} <= waiting
        }
    )


def describe_file_lock(
    evidence: Evidence, stays: list[Stay], where: StackFrame | None
) -> tuple[str, str]:
    """Describe a convoy for the lock of a file: the file, and the process that holds it."""
    pids = {stay.pid for stay in stays}
    paths = Counter(path for stay in stays if (path := _file_of(evidence, stay)))
    path = paths.most_common(1)[0][0] if paths else _opened(evidence, pids)
    noun = "processes wait" if len(pids) == threads_of(stays) else "threads wait"
    many = f"{threads_of(stays)} {noun}" if threads_of(stays) > 1 else "waits"
    text = f"{many} for the lock of a file ({stays[0].call or 'flock'})"
    text += f": {path}" if path else ""
    text += f", in {evidence.spell(where)}" if where else ""
    parents = {evidence.process(pid).ppid for pid in pids}
    holders = [
        pid
        for pid, links in evidence.facts.descriptors.items()
        if path and path in links.values() and pid not in pids | parents
    ]
    return text, "; ".join(
        filter(None, (_scripts(evidence, parents), _holder(evidence, pids, holders)))
    )


def _file_of(evidence: Evidence, stay: Stay) -> str:
    return evidence.path_of(stay.pid, stay.argument & 0xFFFFFFFF)


def _opened(evidence: Evidence, pids: set[int]) -> str:
    """The file that these processes open all the time, if there is one: for its lock."""
    paths = Counter[str]()
    for one in evidence.facts.paths:
        if one.pid in pids and one.call.startswith("open"):
            paths[one.path] += one.times
    path, times = paths.most_common(1)[0] if paths else ("", 0)
    is_often = times > _OPENED * evidence.elapsed_s and 2 * times > paths.total()
    return path if is_often and path.startswith("/") else ""


def _holder(evidence: Evidence, pids: set[int], users: list[int]) -> str:
    """A clause about the process that holds the lock, or else has the file open meanwhile.

    The kernel's list is of one moment: a holder among those that wait at other times takes turns
    with them.
    """
    held = Counter(one.holder for one in evidence.facts.file_locks if one.pid in pids)
    holder = next((pid for pid, _ in held.most_common(1)), 0)
    if holder in evidence.processes and holder not in pids:
        activity = describe_activity(evidence, evidence.by_process.get(holder, ()))
        return f"{evidence.name(holder)} holds it" + (f", which {activity}" if activity else "")
    if not users:
        return f"{len(pids)} processes take turns" if len(pids) > 1 else ""
    names = ", ".join(map(evidence.name, users[:2]))
    activity = describe_activity(evidence, evidence.by_process.get(users[0], ()))
    return f"it is open in {names}" + (f", which {activity}" if activity else "")


def _scripts(evidence: Evidence, parents: set[int]) -> str:
    """The script that most of the waiting programs belong to."""
    scripts = Counter(
        " ".join(process.command.split()[:2])
        for pid in parents
        if (process := evidence.process(pid)).comm in _SHELLS
    )
    return f"started by {scripts.most_common(1)[0][0]}" if scripts else ""
