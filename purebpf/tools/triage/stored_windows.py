"""The facts of an incident that is over, as far as the windows that an agent stored hold them.

A window has the stacks of CPU time, and of waits where the agent records them, by service and
thread name. It has no processes, system calls, peers, counters or sockets: rules about these are
silent.
"""

from __future__ import annotations

import gzip
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from purebpf.errors import FormatError, PurebpfError
from purebpf.findings.facts import Activity, Facts, Process, StackFrame
from purebpf.findings.ownership import is_interpreter
from purebpf.results.formats.otlp import Entry
from purebpf.results.formats.otlp_reader import ServiceProfile, read_document
from purebpf.tuples import NamedTuple

__all__ = ["NoWindowsError", "Windows", "facts_of", "read_windows"]

_SUFFIX = ".otlp.gz"
_LONGEST = 256 << 20
"""Bytes of an unpacked window."""
_KINDS = {"samples": "cpu", "off_cpu": "wait", "run_queue": "queue"}
"""The kind of an activity by the type of a profile."""
_GIL = "[GIL]"
_SERVES = ("inet_csk_accept", "ep_poll", "do_epoll_wait", "unix_accept")
"""Functions of the kernel in which a thread waits for a client."""
_IN_PACKAGES = frozenset(
    {
        *("base_events", "selector_events", "unix_events", "events", "runners", "streams", "tasks"),
        *("thread", "_base", "popen_fork", "connection", "encoder", "decoder"),
    }
)
"""Files in packages of Python's library."""
_ABSENT = (
    "processes, system calls, peers, memory and sockets: stored windows hold the stacks of CPU "
    "time and waits only, with file names instead of paths"
)
_NO_WAITS = "waits: the agent records them with `enabled = true` in section [wait]"


class NoWindowsError(PurebpfError):
    """There is no stored window of the wanted time."""


class Windows(NamedTuple):
    """Windows of one kind each, and the files that could not be read."""

    profiles: tuple[ServiceProfile, ...]
    broken: tuple[str, ...] = ()


def read_windows(folder: str, since_s: float) -> Windows:
    """Read the windows below a folder that ended in the last `since_s` seconds.

    A window that was stored for several sinks is read once.

    Raises:
        NoWindowsError: the folder cannot be read, or has no such window.
    """
    if not os.path.isdir(folder):
        raise NoWindowsError(f"{folder} is no directory: give the one of the agent's spool or sink")
    first_ns = round(1e9 * (time.time() - since_s))
    paths = {path.name: path for path in sorted(Path(folder).rglob(f"*{_SUFFIX}"))}
    profiles, broken = list[ServiceProfile](), list[str]()
    for path in paths.values():
        try:
            read = read_document(_unpack(path), str(path))
        except (FormatError, OSError, EOFError) as error:
            broken.append(f"{path.name}: {error}")
            continue
        profiles += [one for one in read if _end_ns(one) > first_ns]
    if not profiles:
        raise NoWindowsError(
            f"no window below {folder} ended in the last {since_s:.0f} s ({len(paths)} are there): "
            "try a longer --since"
        )
    return Windows(tuple(profiles), tuple(broken))


def _unpack(path: Path) -> bytes:
    with gzip.open(path, "rb") as file:
        data = file.read(_LONGEST + 1)
    if len(data) > _LONGEST:
        raise FormatError(str(path), "window", f"it has more than {_LONGEST >> 20} MiB")
    return data


def _end_ns(one: ServiceProfile) -> int:
    return one.window.started_ns + one.window.duration_ns


def facts_of(windows: Windows, cpus: int) -> Facts:
    """Combine windows into facts; each service and thread name becomes a process of one thread.

    Process IDs are negative, as windows have none.

    Args:
        windows: of any time.
        cpus: of the machine.
    """
    numbers: dict[tuple[str, str], int] = {}
    seconds: dict[tuple[int, str, Sequence[Entry]], float] = defaultdict(float)
    for window, series in windows.profiles:
        kind = _KINDS.get(window.type)
        if kind is None:
            continue
        service = str(dict(series.resource).get("service.name", ""))
        for (comm, stack), value in series.samples.items():
            pid = numbers.setdefault((service, comm), -len(numbers) - 1)
            seconds[pid, kind, stack] += value * (window.period_ns or 1) / 1e9
    activities = tuple(
        _activity(pid, kind, stack, spent_s) for (pid, kind, stack), spent_s in seconds.items()
    )
    frames: dict[int, list[StackFrame]] = defaultdict(list)
    for one in activities:
        frames[one.pid] += one.user
    processes = tuple(
        Process(pid, 0, comm or service, _executable(frames[pid]), unit=service)
        for (service, comm), pid in numbers.items()
    )
    return Facts(
        _covered_s(windows.profiles),
        cpus,
        activities=activities,
        processes=processes,
        descriptors=dict(_sockets(activities, numbers)),
        counters={"user": sum(one.seconds for one in activities if one.kind == "cpu")},
        missing=tuple(_missing(windows)),
    )


def _sockets(
    activities: Iterable[Activity], numbers: dict[tuple[str, str], int]
) -> Iterator[tuple[int, dict[int, str]]]:
    """A socket for each program of a service that waits for clients: they may wait for it."""
    serving = {
        one.pid
        for one in activities
        if one.kind == "wait" and any(name.startswith(_SERVES) for name in one.kernel)
    }
    services = {service for (service, _), pid in numbers.items() if pid in serving}
    for (service, _), pid in numbers.items():
        if service in services:
            yield pid, {3: f"socket:[{-pid}]"}


def _activity(pid: int, kind: str, stack: Sequence[Entry], seconds: float) -> Activity:
    kernel = tuple(entry.name for entry in stack if entry.kind == "kernel")
    user = tuple(
        StackFrame(entry.name, _path_of(entry), 0, entry.kind)
        for entry in stack
        if entry.kind != "kernel" and entry.name != _GIL
    )
    is_gil = any(entry.name == _GIL for entry in stack)
    state = "gil" if is_gil else "S" if kind == "wait" else ""
    return Activity(pid, pid, "", kind, state, seconds, kernel, user)


def _path_of(entry: Entry) -> str:
    """A path where a library's file, which windows have without its folder, is one of a library."""
    module = entry.module
    if not module or module[0] in "/[<":
        return module
    if entry.kind == "python":
        stem = module.removesuffix(".py")
        is_library = stem in sys.stdlib_module_names or stem in _IN_PACKAGES
        return f"/usr/lib/python3/{module}" if is_library else f"/{module}"
    return f"/usr/lib/{module}" if ".so" in module else f"/{module}"


def _executable(frames: Sequence[StackFrame]) -> str:
    """The file of the outermost native frames: an interpreter, or the program itself."""
    names = ("_start", "main", "main.main", "runtime.goexit", "Py_BytesMain", "Py_RunMain")
    first = (frame.module for frame in frames if frame.name.startswith(names))
    return next(filter(is_interpreter, (frame.module for frame in frames)), next(first, ""))


def _covered_s(profiles: Iterable[ServiceProfile]) -> float:
    """The time of the windows of the kind that covers most."""
    spans: dict[str, dict[int, int]] = defaultdict(dict)
    for window, _ in profiles:
        spans[window.type][window.started_ns] = window.duration_ns
    return max(sum(durations.values()) for durations in spans.values()) / 1e9


def _missing(windows: Windows) -> Iterator[str]:
    starts = [one.window.started_ns / 1e9 for one in windows.profiles]
    ends = [_end_ns(one) / 1e9 for one in windows.profiles]
    yield f"anything outside of {_clock(min(starts))} to {_clock(max(ends))}"
    yield _ABSENT
    if all(one.window.type != "off_cpu" for one in windows.profiles):
        yield _NO_WAITS
    yield from (f"a window that cannot be read: {problem}" for problem in windows.broken)


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
