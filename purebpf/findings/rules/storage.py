"""Waits for disks: synced writes, reads behind others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay
from purebpf.findings.finding import Finding
from purebpf.findings.grouping import by_function
from purebpf.findings.kernel_reasons import is_in_fsync
from purebpf.findings.rules.call_groups import started_by
from purebpf.findings.rules.cpu import busiest_own
from purebpf.findings.words import call_site, chief, count_threads

__all__ = ["disk_waits", "synced_writes"]

_LEAST, _LEAST_OF_NEW = 0.03, 0.3
"""Seconds a second; a program that has just started reads its own files."""
_LEAST_OF_MANY, _MANY = 0.01, 100.0
"""The same of a program that syncs so often a second: a disk that is fast today."""
_DATABASES = re.compile(
    r"/(postgres|mysqld|mariadbd|redis-server|valkey-server|keydb-server|mongod|etcd|influxd"
    r"|cockroach|beam\.smp)$"
)
"""Programs that sync so often because that is what they are for."""
_SYNCS = ("fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync")
_WRITES_THROUGH = "generic_write_sync"
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "busybox"})
_MOVES = 1e6
"""Bytes a second of who uses a disk."""


def synced_writes(evidence: Evidence) -> Iterator[Finding]:
    """Threads wait for their data to reach the disk."""
    for stays in by_function(evidence, [s for s in evidence.stays if _is_sync(s)]):
        pids, where = chief(stays), next((s.own for s in stays if s.own is not None), None)
        tids = {stay.tid for stay in stays}
        sums = [one for one in evidence.facts.waits if one.tid in tids and one.call in _SYNCS]
        cost = max(evidence.rate(stays), sum(one.seconds for one in sums) / evidence.elapsed_s)
        calls = evidence.count_calls(pids, _SYNCS)
        if cost < _LEAST and not (cost >= _LEAST_OF_MANY and _syncs_much(evidence, pids, calls)):
            continue
        function = evidence.spell(where) if where else call_site(evidence, pids, "sync")
        near = "" if function else _run_between(evidence, tids)
        path = _path(evidence, stays)
        call = next((stay.call for stay in stays if stay.call in _SYNCS), "")
        call = call or _synced_call(stays)
        calls = calls or evidence.count_calls(pids, (call.partition(" ")[0],))
        parent = started_by(evidence, stays[0].comm, {stay.pid for stay in stays})
        rate = "" if parent else f": {calls / evidence.elapsed_s:.0f} times a second"
        yield Finding(
            *("fsync", evidence.process(pids[0]).comm, pids, cost),
            f"waits for {call}{f' in {function}' if function else near}{rate}"
            + (f", of {path}" if path else ""),
            (
                parent or f"{count_threads(stays, 'wait')} {cost:.2f} s a second",
                _used_by(evidence, pids),
            ),
            ("offcpu", "-p", str(pids[0])),
            own=evidence.source(where),
            place=path,
        )


def _syncs_much(evidence: Evidence, pids: tuple[int, ...], calls: int) -> bool:
    """Return True for a program that syncs its data all the time, and is no database."""
    exe = evidence.process(pids[0]).exe
    return calls >= _MANY * evidence.elapsed_s and not _DATABASES.search(exe)


def _run_between(evidence: Evidence, tids: set[int]) -> str:
    """A clause about the own function that threads run between waits whose stack was not read."""
    running = [
        stay for tid in tids for stay in evidence.by_thread.get(tid, ()) if stay.kind == "cpu"
    ]
    own = busiest_own(running)
    return f" near {evidence.spell(own)}" if own is not None else ""


def disk_waits(evidence: Evidence) -> Iterator[Finding]:
    """Threads wait for reads and writes; who moves most bytes is named."""
    waits = [s for s in evidence.work("disk", "dirty-pages") if not _is_sync(s)]
    movers = _movers(evidence)
    for stays in by_function(evidence, waits):
        cost = evidence.rate(stays)
        pids, where = chief(stays), next((s.own for s in stays if s.own is not None), None)
        if cost < _LEAST or (cost < _LEAST_OF_NEW and all(map(evidence.is_new, pids))):
            continue
        used = _used_by(evidence, pids)
        is_mover = bool(movers) and movers[0][1] in pids and movers[0][0] > _MOVES
        path = _path(evidence, stays)
        kernel = stays[0].kernel[0] if stays[0].kernel else "?"
        yield Finding(
            *("disk", evidence.process(pids[0]).comm, pids, cost * (0.1 if is_mover else 1)),
            f"waits for the disk{f' in {evidence.spell(where)}' if where else ''} ({kernel})"
            + (f", {path}" if path else ""),
            (used or f"it moves {movers[0][0] / 1e6 if movers else 0:.0f} MB/s itself",),
            ("io", "--by", "process"),
            own=evidence.source(where),
            place=path,
        )


def _movers(evidence: Evidence) -> list[tuple[float, int]]:
    """Bytes a second of each process, children that it has waited for included."""
    return sorted(
        ((process.read_bytes + process.written_bytes) / evidence.elapsed_s, process.pid)
        for process in evidence.facts.processes
    )[::-1]


def _used_by(evidence: Evidence, pids: tuple[int, ...]) -> str:
    """A clause about the other processes that use the disk most."""
    others = [
        f"{evidence.name(pid)} {rate / 1e6:.0f} MB/s{_children_of(evidence, pid)}"
        for rate, pid in _movers(evidence)[:3]
        if rate > _MOVES and pid not in pids
    ]
    return f"the disk is used by {', '.join(others)}" if others else ""


def _children_of(evidence: Evidence, pid: int) -> str:
    """The programs that a shell starts, which move the bytes: ` (cp, sync)`."""
    started: Counter[str] = Counter()
    for start in evidence.facts.starts:
        if start.parent == pid and not start.is_fork:
            started[start.comm] += start.times
    names = ", ".join(name for name, _ in started.most_common(2))
    is_shell = evidence.process(pid).exe.rpartition("/")[2] in _SHELLS
    return f" ({names})" if names and is_shell else ""


def _is_sync(stay: Stay) -> bool:
    """Return True for a wait in fsync(2) or one of its kind, and for the CPU after it."""
    if stay.kind == "cpu":
        return False
    if stay.kind == "fsync" or stay.call in _SYNCS:
        return True
    if stay.kind not in ("disk", "queue"):
        return False
    return is_in_fsync(stay.kernel) or _WRITES_THROUGH in stay.kernel


def _synced_call(stays: list[Stay]) -> str:
    """The call that waits for its data although it is no fsync(2): a write with O_SYNC."""
    calls = Counter(stay.call for stay in stays if stay.call)
    name = calls.most_common(1)[0][0] if calls else ""
    return f"{name} with O_SYNC or O_DSYNC" if "write" in name else "fsync"


def _path(evidence: Evidence, stays: list[Stay]) -> str:
    paths = Counter(
        path
        for stay in stays
        if stay.call and (path := evidence.path_of(stay.pid, stay.argument & 0xFFFFFFFF))
    )
    return paths.most_common(1)[0][0] if paths else ""
