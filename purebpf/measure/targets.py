"""The targets of a measurement: checks that they exist before anything is loaded."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Protocol

from purebpf.errors import NotSupportedError, PurebpfError
from purebpf.loader.host import cpus
from purebpf.measure.target_ends import first_pids
from purebpf.syscall import proc
from purebpf.syscall.descriptor import Descriptor, directory
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.observe.instruments.task_filter import TaskFilter

__all__ = [
    "NoSuchTargetError",
    "PidNamespace",
    "Target",
    "check_cpus",
    "check_processes",
    "check_threads",
    "is_in_scope",
    "make_task_filter",
    "open_cgroup",
    "processes_in",
    "without_gone",
]


class Target(Protocol):
    """The options that say whom to sample. Empty: everybody."""

    @property
    def pids(self) -> tuple[int, ...]:
        """Processes."""

    @property
    def tids(self) -> tuple[int, ...]:
        """Threads."""

    @property
    def cpus(self) -> tuple[int, ...]:
        """CPUs."""

    @property
    def cgroup(self) -> str | None:
        """The path of a cgroup v2 directory."""

    @property
    def comm(self) -> str | None:
        """The name of processes, which come and go during the run."""

    @property
    def uid(self) -> int | None:
        """The user that tasks run as."""


class NoSuchTargetError(PurebpfError):
    """The target of the measurement does not exist."""


class PidNamespace(NamedTuple):
    """A pid namespace as bpf_get_ns_current_pid_tgid() wants it: (0, 0) is the initial one."""

    dev: int
    ino: int

    @classmethod
    def own(cls) -> PidNamespace:
        """The one that gives the numbers this process sees.

        Raises:
            NotSupportedError: there is no /proc that says which that is.
        """
        try:
            if proc.in_first_namespace("pid"):
                return cls(0, 0)
            status = os.stat(f"{proc.PROC}/self/ns/pid")
        except FileNotFoundError:
            raise NotSupportedError(
                "pid namespaces", "/proc is not mounted; mount it with: mount -t proc proc /proc"
            ) from None
        major, minor = os.major(status.st_dev), os.minor(status.st_dev)
        return cls(major << 20 | minor, status.st_ino)  # the kernel's own encoding of a dev_t

    def needs_types(self) -> bool:
        """Return True if programs have to read the kernel's structs: namespaces below it have tasks
        as well.

        False where there is no need, and where the kernel does not show its BTF: such tasks have
        no number then.
        """
        if not self.ino:
            return False
        from purebpf.loader.types.kernel_btf import has_kernel_btf

        return has_kernel_btf()


@contextmanager
def make_task_filter(
    target: Target, *, thread_option: str = "-t", command_pid: int = 0, tree: bool = False
) -> Iterator[TaskFilter]:
    """Whom the options mean, for as long as the context is entered: its cgroup is closed then.

    Programs are attached within the context.

    `tree`: also the processes below these, and the ones they start from now on; for programs with
    verdicts.

    Raises:
        NoSuchTargetError: a process, thread, CPU or cgroup that does not exist; all processes or
            threads ended before the context did, so that nothing of them was measured.
        NotSupportedError: a cgroup that is not of version 2; /proc is not mounted.
    """
    from purebpf.observe.instruments.task_filter import TaskFilter  # not without programs

    namespace = PidNamespace.own()
    check_cpus(target.cpus)
    check_processes(target.pids, thread_option=thread_option)
    check_threads(target.tids)
    living = without_gone(target.pids)
    before = {task: proc.start_ticks(task) for task in living or target.tids}
    pids = first_pids(living, tree=tree)
    cgroup = None if target.cgroup is None else open_cgroup(target.cgroup)
    with cgroup or nullcontext():
        yield TaskFilter(
            pids,
            target.tids,
            None if cgroup is None else cgroup.fileno(),
            target.cpus,
            command_pid,
            namespace=namespace,
            tree=(tree and bool(target.pids))
            or (target.comm is not None and bool(getattr(target, "tree", False))),
            comm=target.comm,
            uid=target.uid,
            started=before,
        )
    _check_living(before, threads=not living)


def _check_living(before: Mapping[int, int | None], *, threads: bool) -> None:
    """Check that a task has not ended since it was looked at; another one may have its ID by now.

    Raises:
        NoSuchTargetError: all have.
    """
    if not before or any(_still_runs(*task, threads=threads) for task in before.items()):
        return
    first = min(before)
    more = "" if len(before) == 1 else f" and {len(before) - 1} more"
    raise NoSuchTargetError(
        f"{first}{more} ended before the measurement began: attaching takes up to a second, or "
        "longer on a busy machine. Measure a command from its start: -- COMMAND"
    )


def _still_runs(task: int, ticks: int | None, *, threads: bool) -> bool:
    """Return True if a process or thread is the one that was forked then, and has not ended."""
    status = proc.status(task)
    if status is None or proc.start_ticks(task) != ticks:
        return False
    if status["State"][0] not in "ZX":
        return True
    return not threads and any(tid != task for tid in proc.threads(task))


def check_cpus(wanted: Collection[int]) -> None:
    """Check that every CPU is online.

    Raises:
        NoSuchTargetError: one is not.
    """
    missing = set(wanted).difference(cpus.online()) if wanted else ()
    if missing:
        online = proc.cpu_list("online")
        raise NoSuchTargetError(f"CPU {min(missing)} is offline (online: {online})")


def without_gone(pids: Sequence[int]) -> tuple[int, ...]:
    """The processes of a target that have not ended; all of them if every one has."""
    living = tuple([pid for pid in pids if proc.status(pid) is not None])
    return living or tuple(pids)


def check_processes(pids: Sequence[int], *, thread_option: str) -> None:
    """Check that there is a target: of several processes, some may have ended.

    Raises:
        NoSuchTargetError: every one has ended, or one is none, or /proc hides it; for a thread's
            number, names the option for it.
    """
    for pid in pids:
        _check_shown(pid)
    for pid in without_gone(pids):
        tgid = _process_of(pid)
        if tgid != pid:
            raise NoSuchTargetError(
                f"{pid} is a thread of process {tgid}: select it with {thread_option} {pid}, or "
                f"its process with -p {tgid}"
            )


def check_threads(tids: Iterable[int]) -> None:
    """Check that every one is a thread.

    Raises:
        NoSuchTargetError: one is not.
    """
    for tid in tids:
        _process_of(tid)


def _check_shown(task: int) -> None:
    """Check that /proc does not hide a process or thread: such a one has not ended.

    Raises:
        NoSuchTargetError: it does.
    """
    if proc.hides(task):
        raise NoSuchTargetError(
            f"{task} lives, and /proc does not show it: {proc.PROC} is mounted with hidepid, or "
            "for another PID namespace. Run this as root there"
        )


def _process_of(task: int) -> int:
    status = proc.status(task)
    if status is None:
        _check_shown(task)
        raise NoSuchTargetError(
            f"no process or thread has ID {task} (/proc/{task} does not exist in this PID "
            "namespace)"
        )
    return int(status["Tgid"])


def open_cgroup(path: str) -> Descriptor:
    """A descriptor of a cgroup v2 directory; the caller closes it.

    Raises:
        NoSuchTargetError: there is no such directory.
        NotSupportedError: it is something else.
    """
    try:
        opened = directory(path)
    except OSError as error:
        raise NoSuchTargetError(
            f"cgroup directory {path} does not exist ({error.strerror})"
        ) from None
    if not os.path.exists(os.path.join(path, "cgroup.controllers")):
        opened.close()
        raise NotSupportedError(
            f"measuring {path}",
            "the path is not a cgroup v2 directory; find the mount with: findmnt -t cgroup2",
        )
    return opened


def processes_in(cgroup: str) -> set[int]:
    """Return the processes in a cgroup v2 directory, and below it, at this moment.

    Raises:
        NoSuchTargetError, NotSupportedError: as `open_cgroup`.
    """
    open_cgroup(cgroup).close()
    pids: set[int] = set()
    for folder, _, _ in os.walk(cgroup):
        with suppress(OSError), open(os.path.join(folder, "cgroup.procs"), "rb") as file:
            pids.update(map(int, file.read().split()))
    return pids


def is_in_scope(tid: int, target: Target) -> bool:
    """Return True if a thread is in the target's cgroup and runs as its user, at this moment."""
    if target.uid is not None and _user_of(tid) != target.uid:
        return False
    return target.cgroup is None or _is_below(tid, target.cgroup)


def _user_of(tid: int) -> int | None:
    """Return the real user of a thread, as bpf_get_current_uid_gid() does."""
    status = proc.status(tid)
    return int(status["Uid"].split()[0]) if status else None


def _is_below(tid: int, cgroup: str) -> bool:
    """Return True if a thread is in a cgroup v2 directory, or below it."""
    from purebpf.loader.host import cgroups

    root = cgroups.root()
    for line in (proc.cgroup(tid) or "").split("\n"):
        number, _, path = line.partition("::")
        if number == "0":
            own = os.path.realpath(f"{root}{path}")
            wanted = os.path.realpath(cgroup)
            return own == wanted or own.startswith(f"{wanted}/")
    return False
