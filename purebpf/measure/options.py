"""The fields that the options of most commands share: the target, the run, and its stacks."""

from __future__ import annotations

from purebpf.tuples import Options

__all__ = ["RunOptions", "StackOptions", "TargetOptions", "TaskOptions"]


class TaskOptions(Options):
    """The tasks to measure. Empty tuples and None mean: no restriction.

    Attributes:
        pids: these processes, with all their threads.
        tids: these threads.
        tree: the children of `pids`, too: those that exist, and those to come.
        comm: the processes with this name, for as long as they have it.
        cgroup: tasks in this cgroup v2 directory, and below it.
        uid: tasks that run as this user, as the initial user namespace numbers it.
    """

    pids: tuple[int, ...] = ()
    tids: tuple[int, ...] = ()
    tree: bool = False
    comm: str | None = None
    cgroup: str | None = None
    uid: int | None = None


class TargetOptions(TaskOptions):
    """The tasks and the CPUs to measure.

    Attributes:
        cpus: only these CPUs; (): all.
    """

    cpus: tuple[int, ...] = ()


class RunOptions(Options):
    """The end of a run: a signal, `duration_s`, or the end of `command` or of all targets.

    Attributes:
        duration_s: in seconds; None: another end.
        command: the words of a command to run; (): none.
    """

    duration_s: float | None = None
    command: tuple[str, ...] = ()


class StackOptions(Options):
    """The way to walk user stacks, and the room for them.

    Attributes:
        call_graph: one of `purebpf.observe.instruments.call_graph.CHOICES`.
        python: read the frames of Python functions.
        python_lines: also the lines that these functions execute.
        native: keep the frames of the interpreter itself.
        hash_storage_size: different rows that there is room for in the kernel.
        stack_storage_size: different stacks that there is room for in the kernel.
    """

    call_graph: str = "auto"
    python: bool = True
    python_lines: bool = False
    native: bool = False
    hash_storage_size: int = 40960
    stack_storage_size: int = 16384
