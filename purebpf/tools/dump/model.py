"""The content of a dump: a process, its threads, their frames."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = [
    "MONITOR",
    "DumpedFrame",
    "DumpedGoroutines",
    "DumpedTask",
    "DumpedThread",
    "ProcessDump",
]

MONITOR = "the monitor "
"""The beginning of `waits_for` of a thread that wants to enter a monitor of Java."""


class DumpedFrame(NamedTuple):
    """A call.

    Attributes:
        kind: "python", "php", "ruby", "java", "javascript", "user" or "kernel".
        name: of the function; of an address without a name, the address.
        file: of the source for Python, Java ("Native Method" for a method without one),
            JavaScript, PHP and Ruby ("built-in" for their own functions), or else the module.
        line: 0 where it is not known.
    """

    kind: str
    name: str
    file: str
    line: int = 0


class DumpedThread(NamedTuple):
    """A thread.

    Attributes:
        tid, name: its number in our PID namespace, and its name in the kernel.
        state: "runs", "ready" (waits for a CPU), "sleeps", "disk sleep", "stopped"...
        waits_for: the thing that it sleeps for, "the GIL (held by 4711)", "read(3: /dev/null)",
            "the monitor of a shop.OrderBook"; "" if it does not sleep, or if the reason is unknown.
        is_python: whether Python knows it.
        holds_gil: whether it has the GIL of its interpreter.
        interpreter: the number of that; 0 is the main one, -1 none.
        frames: innermost first.
        problems: why the frames may be wrong, or not all; empty for a whole stack.
        held_by: the thread that has the lock which it waits for; 0: not known, or no lock.
    """

    tid: int
    name: str
    state: str
    waits_for: str
    is_python: bool
    holds_gil: bool
    interpreter: int
    frames: tuple[DumpedFrame, ...]
    problems: tuple[str, ...]
    held_by: int = 0


class DumpedTask(NamedTuple):
    """A task of asyncio.

    Attributes:
        name: "Task-1", or the one that the program gave it.
        state: "runs", "waits", "ready" (its wait has ended, or it has not begun).
        waits_for: the names of the tasks that it waits for.
        waits_on: the type of another object that it waits for: "Future"; "" for none.
        awaited_by: the names of the tasks that wait for it.
        frames: its coroutine and those that it awaits, innermost first; () of one that runs.
        problems: why the frames are not all.
    """

    name: str
    state: str
    waits_for: tuple[str, ...]
    waits_on: str
    awaited_by: tuple[str, ...]
    frames: tuple[DumpedFrame, ...]
    problems: tuple[str, ...]


class DumpedGoroutines(NamedTuple):
    """Goroutines of Go that no thread runs, with equal stacks.

    Attributes:
        number: how many they are; of very many, an estimate.
        frames: innermost first.
    """

    number: int
    frames: tuple[DumpedFrame, ...]


class ProcessDump(NamedTuple):
    """A process.

    Attributes:
        pid, command: its number in our PID namespace, and its command line.
        python: its version, "3.12"; "" for none.
        is_free_threaded: a build of Python without a GIL.
        threads: by number.
        notes: data that could not be read for any thread, and why.
        duration_s: how long it took.
        tasks: the tasks of asyncio; None: the user did not want them, or they cannot be read.
        java: the version of its JVM, "17.0.15+6-Debian-1deb12u1"; "" for none.
        v8: the version of its V8, "13.6"; "" for none.
        goroutines: those that wait; () of a program that is not Go's, or has no symbols.
        php: the version of its PHP, "8.2"; "" for none.
        ruby: the version of its Ruby, "3.1"; "" for none.
    """

    pid: int
    command: str
    python: str
    is_free_threaded: bool
    threads: tuple[DumpedThread, ...]
    notes: tuple[str, ...]
    duration_s: float
    tasks: tuple[DumpedTask, ...] | None = None
    java: str = ""
    v8: str = ""
    goroutines: tuple[DumpedGoroutines, ...] = ()
    php: str = ""
    ruby: str = ""
