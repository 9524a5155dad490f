"""Where to sample: the threads and CPUs that the target means."""

from __future__ import annotations

import os
from collections.abc import Iterable

from purebpf.cli import targets
from purebpf.cli.targets import NoSuchTargetError
from purebpf.kernel import cpus, existing
from purebpf.record.events import Place
from purebpf.record.options import Options
from purebpf.syscall import proc

__all__ = ["observed", "places", "side_band_places"]


def places(options: Options, command_pid: int) -> list[Place]:
    """Each thread, or the cgroup or everybody, on each CPU.

    Raises:
        NoSuchTargetError: a process, thread, user's process or cgroup that does not exist.
        NotSupportedError: a cgroup that is not of version 2.
    """
    where = options.cpus or cpus.online()
    if options.cgroup is not None:
        os.close(targets.open_cgroup(options.cgroup))
        return [Place(-1, cpu, options.cgroup) for cpu in where]
    return [Place(pid, cpu) for pid in _tasks(options, command_pid) for cpu in where]


def side_band_places(found: list[Place]) -> list[Place]:
    """The same tasks; where all are sampled on some CPUs or in a cgroup, all CPUs.

    A process maps its files on any CPU, and before it enters a cgroup.
    """
    if found[0].pid >= 0:
        own = dict.fromkeys(place.pid for place in found)
        return [Place(pid, cpu) for pid in own for cpu in cpus.online()]
    return [Place(-1, cpu) for cpu in cpus.online()]


def observed(options: Options) -> Iterable[int]:
    """The processes that are there already and may have samples."""
    if options.follows_command:
        return ()
    if options.pids:
        return options.pids
    if options.tids:
        return dict.fromkeys(filter(None, map(_process_of, options.tids)))
    if options.uid is not None:
        return _of_user(options.uid)
    return existing.running()


def _tasks(options: Options, command_pid: int) -> list[int]:
    if options.follows_command:
        return [command_pid]
    if options.pids:
        targets.check_processes(options.pids, thread_option="-t")
        return _threads(options.pids)
    if options.tids:
        targets.check_threads(options.tids)
        return list(options.tids)
    if options.uid is not None:
        found = _threads(_of_user(options.uid))
        if not found:
            raise NoSuchTargetError(f"there is no process of user {options.uid}")
        return found
    return [-1]


def _of_user(uid: int) -> list[int]:
    """The processes whose real user that is, without this one."""
    found = []
    for pid in existing.running():
        status = proc.status(pid)
        if status and int(status["Uid"].split()[0]) == uid and pid != os.getpid():
            found.append(pid)
    return found


def _threads(pids: Iterable[int]) -> list[int]:
    found: list[int] = []
    for pid in pids:
        try:
            found += sorted(int(name) for name in os.listdir(f"{proc.PROC}/{pid}/task"))
        except OSError:  # it has ended
            continue
    return found


def _process_of(tid: int) -> int:
    status = proc.status(tid)
    return int(status["Tgid"]) if status else 0
