"""Targets by name: processes of a name, the cgroup of a container."""

from __future__ import annotations

import os
from collections.abc import Iterator

from purebpf.errors import KernelError
from purebpf.loader.host import cgroups
from purebpf.measure.target_ends import first_pids
from purebpf.measure.targets import (
    NoSuchTargetError,
    Target,
    check_processes,
    check_threads,
    is_in_scope,
    processes_in,
    without_gone,
)
from purebpf.syscall import proc

__all__ = ["container_cgroup", "explain_absence", "present_processes", "processes_named"]

_SHOWN = 5


def _processes_called(name: str) -> Iterator[int]:
    from purebpf.observe.instruments.process_tree import processes_called  # not for -p

    return processes_called(name)


def processes_named(name: str) -> tuple[int, ...]:
    """The processes of a name, as in /proc/PID/comm, without this one.

    Raises:
        NoSuchTargetError: there is none now.
    """
    pids = tuple(_processes_called(name))
    if not pids:
        raise NoSuchTargetError(f"no process is called {name!r}{_similar(name)}")
    return pids


def present_processes(target: Target, *, tree: bool = False) -> tuple[int, ...]:
    """Return the processes that a target means at this moment, without this one.

    Args:
        target: whom the options mean. Its CPUs do not matter.
        tree: add the children of `pids` and `comm`, and their children.

    Raises:
        NoSuchTargetError: there is none.
        NotSupportedError: a cgroup that is not of version 2.
    """
    if target.pids:
        check_processes(target.pids, thread_option="-t")
        pids = first_pids(without_gone(target.pids), tree=tree)
    elif target.tids:
        check_threads(target.tids)
        statuses = [proc.status(tid) for tid in target.tids]
        pids = tuple([int(status["Tgid"]) for status in statuses if status])
    elif target.comm is not None:
        pids = first_pids(processes_named(target.comm), tree=tree)
    elif target.cgroup is not None:
        pids = tuple(processes_in(target.cgroup))
    else:
        pids = tuple(proc.pids())
    present = {pid for pid in pids if pid != os.getpid() and is_in_scope(pid, target)}
    if not present:
        raise NoSuchTargetError("no process that runs now is in this target")
    return tuple(sorted(present))


def explain_absence(name: str) -> Iterator[str]:
    """Yield a sentence if no process has the name yet."""
    if not any(True for _ in _processes_called(name)):
        yield f"no process is called {name!r} yet{_similar(name)}"


def _comm(pid: int) -> str | None:
    try:
        return proc.comm(pid)
    except KernelError:  # not ours to read
        return None


def _similar(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, {_comm(pid) or "" for pid in proc.pids()}, n=_SHOWN)
    return f"; similar: {', '.join(close)}" if close else ""


def container_cgroup(name: str) -> str:
    """The cgroup v2 directory of a container, pod or unit that runs now.

    Args:
        name: as purebpf prints it (`purebpf.symbols.cgroup_names`), the first characters of a
            container's ID, or the name of a unit with or without its ending.

    Raises:
        NoSuchTargetError: there is none, or there are several.
    """
    from purebpf.symbols.cgroup_names import cgroup_name, is_called  # not for -p

    root = cgroups.root()
    if root is None:
        raise NoSuchTargetError(f"no container: {cgroups.where()}")
    labels: dict[str, str] = {}
    known: set[str] = set()
    for pid in proc.pids():
        text = _cgroup(pid)
        label = cgroup_name(text).label
        known.add(label)
        path = _version_2(text)
        if path and is_called(name, label, path):
            labels[path] = label
    shortest = min(labels, key=len, default="")
    others = [path for path in labels if not f"{path}/".startswith(f"{shortest}/")]
    if others:
        paths = ", ".join(sorted(labels)[:_SHOWN])
        raise NoSuchTargetError(f"{name!r} means several cgroups: {paths}; use -G PATH")
    if not labels:
        names = ", ".join(sorted(filter(None, known))[:_SHOWN])
        raise NoSuchTargetError(f"no container or unit {name!r} runs now; some that do: {names}")
    return f"{root}{shortest}"


def _cgroup(pid: int) -> str:
    try:
        return proc.cgroup(pid) or ""
    except KernelError:
        return ""


def _version_2(text: str) -> str:
    """Return the path below the mount, from the line of hierarchy 0, except for the root."""
    for line in text.split("\n"):
        number, _, path = line.partition("::")
        if number == "0":
            return path if path != "/" else ""
    return ""
