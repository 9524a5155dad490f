"""Events in the life of processes. Pure."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["Ended", "Event", "Executed", "Refused", "Task", "Used"]


class Task(NamedTuple):
    """The task of an event, as it was then.

    `cgroup` is a label of `purebpf.symbols.cgroup_names`. The `ppid` is 0 where the parent is
    outside of our PID namespace.
    """

    time_ns: int
    pid: int
    tid: int
    ppid: int
    uid: int
    comm: str
    cgroup: str


class Executed(NamedTuple):
    """A process executes another program.

    Attributes:
        path: as the process passed it to execve(2).
        executable: the file that runs, with its whole path; of a script, its interpreter.
        arguments: as many as there was room for.
        cut_bytes: of the arguments, beyond those.
    """

    task: Task
    path: str
    executable: str
    arguments: tuple[str, ...]
    cut_bytes: int


class Ended(NamedTuple):
    """A process ends: with a `status` (by exit(2)), or by a `signal`; the other one is None.

    `lifetime_ns` counts from its fork.
    """

    task: Task
    status: int | None
    signal: int | None
    dumped_core: bool
    lifetime_ns: int


class Refused(NamedTuple):
    """A call of execve(2) fails, with an errno."""

    task: Task
    path: str
    errno: int


class Used(NamedTuple):
    """The CPU time of a thread that has ended; `task` is of the thread."""

    task: Task
    cpu_ns: int


Event = Executed | Ended | Refused | Used
