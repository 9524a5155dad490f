"""The places to sample: the threads and CPUs of the target."""

from __future__ import annotations

import os
from collections.abc import Iterable

from purebpf.loader.host import cpus
from purebpf.measure import targets
from purebpf.measure.target_ends import with_descendants
from purebpf.measure.targets import NoSuchTargetError, Target
from purebpf.syscall import proc
from purebpf.tuples import NamedTuple

__all__ = ["EventPlace", "every_task", "existing_processes", "places", "side_band_places"]


class EventPlace(NamedTuple):
    """The target of an event: a thread or all (-1), or a cgroup's path, on one CPU."""

    pid: int
    cpu: int
    cgroup: str | None = None


def places(target: Target, command_pid: int = 0) -> list[EventPlace]:
    """Each thread, or the cgroup or everybody, on each CPU; `command_pid` is the one if not 0.

    Raises:
        NoSuchTargetError: a process, thread, user's process or cgroup that does not exist.
        NotSupportedError: a cgroup that is not of version 2.
    """
    where = target.cpus or cpus.online()
    if target.cgroup is not None:
        targets.open_cgroup(target.cgroup).close()
        return [EventPlace(-1, cpu, target.cgroup) for cpu in where]
    return [EventPlace(pid, cpu) for pid in _tasks(target, command_pid) for cpu in where]


def every_task(target: Target) -> list[EventPlace]:
    """All tasks, on each CPU of the target."""
    return [EventPlace(-1, cpu) for cpu in target.cpus or cpus.online()]


def side_band_places(event_places: list[EventPlace]) -> list[EventPlace]:
    """The same tasks; where all are sampled on some CPUs or in a cgroup, all CPUs.

    A process maps its files on any CPU, and before it enters a cgroup.
    """
    if event_places[0].pid >= 0:
        own = dict.fromkeys(place.pid for place in event_places)
        return [EventPlace(pid, cpu) for pid in own for cpu in cpus.online()]
    return [EventPlace(-1, cpu) for cpu in cpus.online()]


def existing_processes(target: Target, command_pid: int = 0) -> Iterable[int]:
    """The processes that are there already and may have samples."""
    if command_pid:
        return ()
    if target.pids:
        return _with_children(target)
    if target.tids:
        return dict.fromkeys(filter(None, map(_process_of, target.tids)))
    if target.uid is not None:
        return _of_user(target.uid)
    return proc.pids()


def _tasks(target: Target, command_pid: int) -> list[int]:
    if command_pid:
        return [command_pid]
    if target.pids:
        targets.check_processes(target.pids, thread_option="-t")
        return _threads(_with_children(target))
    if target.tids:
        targets.check_threads(target.tids)
        return list(target.tids)
    if target.uid is not None:
        tids = _threads(_of_user(target.uid))
        if not tids:
            raise NoSuchTargetError(f"no process belongs to user {target.uid}")
        return tids
    return [-1]


def _with_children(target: Target) -> tuple[int, ...]:
    """Return the processes of the target; with `tree`, also the processes below them."""
    if not getattr(target, "tree", False):
        return target.pids
    return with_descendants(target.pids)


def _of_user(uid: int) -> list[int]:
    """The processes of that real user, without this one."""
    pids = []
    for pid in proc.pids():
        status = proc.status(pid)
        if status and int(status["Uid"].split()[0]) == uid and pid != os.getpid():
            pids.append(pid)
    return pids


def _threads(pids: Iterable[int]) -> list[int]:
    return [tid for pid in pids for tid in sorted(proc.threads(pid))]


def _process_of(tid: int) -> int:
    status = proc.status(tid)
    return int(status["Tgid"]) if status else 0
