"""Compiles a script, runs it, and waits for its end."""

from __future__ import annotations

import math
import os
import select
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from purebpf.errors import KernelError
from purebpf.measure.child import Child
from purebpf.measure.limits import raise_open_files
from purebpf.measure.stop import Stop
from purebpf.observe.script.local_host import LocalHost
from purebpf.observe.script.session import ScriptSession
from purebpf.script.compilation import Compilation, compile_script
from purebpf.script.settings import Settings
from purebpf.tools.script.request import ScriptOptions

__all__ = ["compile_request", "opened", "wait"]

_PREFIX = "BPFTRACE_"
_LONGEST_MS = 1 << 30
"""The longest sleep that poll(2) takes: 12 days."""


def compile_request(options: ScriptOptions, text: str, name: str, child: int = 0) -> Compilation:
    """Compile the script of a request.

    Args:
        options: the request.
        text: the script.
        name: of its file.
        child: the process of the command, 0 without one.

    Raises:
        ScriptError: the script is wrong.
    """
    environment = {
        key.removeprefix(_PREFIX).lower(): value
        for key, value in os.environ.items()
        if key.startswith(_PREFIX)
    }
    settings = Settings(options.parameters, options.pid, child, options.is_unsafe, environment,
                        options.options, options.probe_filter, options.uid,
                        options.cgroup is not None)  # fmt: skip
    return compile_script(text, LocalHost(options.pid, options.traceable_functions), settings, name)


def _words(options: ScriptOptions) -> list[str]:
    """Split a command, without its quotes where bpftrace does not read them either."""
    if options.is_bpftrace:
        return options.command.split()
    import shlex

    return shlex.split(options.command)


@contextmanager
def opened(options: ScriptOptions) -> Iterator[tuple[Stop, Child | None, int]]:
    """Catch signals, start the command in a waiting state, and find the process to follow.

    Yields:
        The stop, the command, and the descriptor that becomes readable when the followed process
        ends; -1 without one.

    Raises:
        KernelError: no such process, or no more processes.
    """
    with ExitStack() as stack:
        stop = stack.enter_context(Stop())
        child = None
        followed = -1
        if options.command:
            child = stack.enter_context(Child(_words(options)))
            followed = child.fileno()
        elif options.pid:
            try:
                followed = os.pidfd_open(options.pid)
            except OSError as error:
                raise KernelError("pidfd_open(2)", error.errno or 0, f"PID {options.pid}") from None
            stack.callback(os.close, followed)
        raise_open_files()
        yield stop, child, followed


def wait(
    session: ScriptSession,
    stop: Stop,
    followed: int,
    on_events: Callable[[], object],
    duration_s: float | None = None,
) -> None:
    """Take events until exit(), a signal, the end of the followed process or of `duration_s`."""
    end_s = math.inf if duration_s is None else time.monotonic() + duration_s
    poll = select.poll()
    for descriptor in (*session.fds, stop.fileno(), followed):
        if descriptor >= 0:
            poll.register(descriptor, select.POLLIN)
    session.is_stopped = stop.__bool__
    session.drain(on_events)
    while not session.is_over and not stop and not session.only_special:
        left_s = end_s - time.monotonic()
        if left_s <= 0:
            break
        pause_ms = session.pause_ms()
        limits = (1e3 * left_s, _LONGEST_MS if pause_ms is None else pause_ms)
        ready = [descriptor for descriptor, _ in poll.poll(min(limits))]
        session.drain(on_events)
        if followed in ready:
            break
        if stop.fileno() in ready:
            stop.drop_others()
