"""The events of a trace: calls, tracepoints, signals, ends of threads, and losses. Pure."""

from __future__ import annotations

from purebpf.tools.trace.tracepoint_format import Value
from purebpf.tuples import NamedTuple

__all__ = ["Call", "Ended", "Event", "Lost", "Passed", "Signalled", "Task"]


class Task(NamedTuple):
    """A thread, when it was seen: IDs in the PID namespace of the tracer, name, label of cgroup."""

    pid: int
    tid: int
    uid: int
    comm: str
    cgroup: str


class Call(NamedTuple):
    """A system call.

    Attributes:
        time_ns: when it began, since 1970; where `duration_ns` is None, when it returned.
        task: of whom.
        name: `openat`; `syscall:N` where the number has no name.
        abi: `x86_64`, `i386`, `x32`, `aarch64` or `arm`.
        names: of the arguments, as the kernel declares them; () where they are not known.
        arguments: as text, as strace writes them; some calls show fewer or other ones.
        words: the arguments as they were passed.
        result: its return value; None: it did not return.
        result_text: the same with the name of an error, and other results: `0 (Timeout)`.
        errno: why it failed; 0 if it did not.
        duration_ns: how long it took, or has taken; None: only its return was seen. It was in
            progress when the run began, or seccomp or a tracer refused it.
        stack: the functions that it was called from, innermost first; None: not asked for.
        ending: `returned`; `unfinished`, the thread ended in it; `in flight`, when the run ended.
    """

    time_ns: int
    task: Task
    name: str
    abi: str
    names: tuple[str, ...]
    arguments: tuple[str, ...]
    words: tuple[int, ...]
    result: int | None
    result_text: str
    errno: int
    duration_ns: int | None
    ending: str
    stack: tuple[str, ...] | None = None


class Signalled(NamedTuple):
    """A signal that is delivered; `info`: its siginfo_t as text."""

    time_ns: int
    task: Task
    name: str
    info: str


class Ended(NamedTuple):
    """A thread that ends; `signal`: the name of the signal that killed it, or ""."""

    time_ns: int
    task: Task
    status: int
    signal: str
    dumped: bool


class Passed(NamedTuple):
    """A tracepoint that a thread passed.

    Attributes:
        time_ns: when, since 1970.
        task: who.
        name: `sched:sched_switch`.
        arguments: its fields as text, by name.
        values: as numbers and strings, by name.
        stack: the functions on the stack, innermost first: functions of the kernel, then of the
            program; None: without stacks.
    """

    time_ns: int
    task: Task
    name: str
    arguments: dict[str, str]
    values: dict[str, Value]
    stack: tuple[str, ...] | None = None


class Lost(NamedTuple):
    """Calls and tracepoints that were dropped before the next event: the ring was full."""

    calls: int
    by_name: dict[str, int]


Event = Call | Passed | Signalled | Ended | Lost
