"""`run_script`: the events of a script for a Python program."""

from __future__ import annotations

import asyncio
import os
import select
import shlex
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, Self

from purebpf.closable import SoleOwner
from purebpf.measure.child import Child
from purebpf.measure.limits import raise_open_files
from purebpf.observe.script.events import Event, EventPrinter, Lost
from purebpf.observe.script.local_host import LocalHost
from purebpf.observe.script.session import ScriptSession
from purebpf.script.compilation import compile_script
from purebpf.script.settings import Settings
from purebpf.tools.script.stacks import link_stacks

__all__ = ["RunningScript", "run_script"]


def run_script(
    text: str,
    *parameters: object,
    pid: int = 0,
    command: str = "",
    seconds: float | None = None,
    unsafe: bool = False,
) -> RunningScript:
    """Compile a script in bpftrace's language, and return its events to iterate over.

        for event in purebpf.run_script('interval:s:1 { printf("%d", @++); }', seconds=5):
            print(event.text, event.values)

    Args:
        text: the script.
        parameters: `$1` and so on.
        pid: trace this process only; 0 for all.
        command: a command to run while the script is attached; its end is the end of the script.
        seconds: end after this time; None: at exit(), `stop()`, or the end of the command.
        unsafe: allow functions that change the traced system.

    Raises:
        ScriptError: the script is wrong.
        KernelError: the command cannot be started.
    """
    return RunningScript(text, tuple(map(str, parameters)), pid, command, seconds, unsafe=unsafe)


class RunningScript(SoleOwner):
    """A script that is attached when its context, or a loop over it, begins.

    It is an iterator of `Printed`, `MapPrinted` and `Lost`; `async for` works, too.

    Raises, when it begins; nothing stays open then:
        VerifierError, AttachError, KernelError, NotSupportedError: the kernel refuses.
    """

    def __init__(
        self,
        text: str,
        parameters: tuple[str, ...],
        pid: int,
        command: str,
        seconds: float | None,
        *,
        unsafe: bool,
    ) -> None:
        self._events: deque[Event] = deque()
        self._seconds = seconds
        self._owned = ExitStack()
        with ExitStack() as owned:
            self._child = owned.enter_context(Child(shlex.split(command))) if command else None
            child = self._child.pid if self._child else 0
            self._pids = {number for number in (pid, child) if number}
            settings = Settings(parameters, pid, child, unsafe)
            self._compilation = compile_script(text, LocalHost(pid), settings)
            self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            owned.callback(os.close, self._wake)
            self._owned = owned.pop_all()
        self._session: ScriptSession | None = None

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            undo.callback(self._owned.close)
            raise_open_files()
            session = ScriptSession(
                self._compilation, self._ignore, self._ignore,
                make_printer=partial(EventPrinter, self._events),
                link_stacks=partial(link_stacks, pids=self._pids),
            )  # fmt: skip
            self._session = self._owned.enter_context(session)
            session.attach()
            if self._child is not None:
                self._child.start()
            undo.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._owned.close()
        self._wake = -1

    def _ignore(self, text: str) -> None:
        """Take text that is an event already."""

    @property
    def maps(self) -> Mapping[str, Mapping[Any, Any]]:
        """The maps of the running script by name: values by key; the key None without one."""
        assert self._session is not None
        return {name: dict(self._session.rows(name)) for name in self._compilation.maps}

    def stop(self) -> None:
        """End the script; from any thread or signal handler."""
        if self._wake >= 0:
            os.eventfd_write(self._wake, 1)

    def __iter__(self) -> Iterator[Event]:
        with ExitStack() as stack:
            if self._session is None:
                stack.enter_context(self)
            session = self._session
            assert session is not None
            for _ in self._waits(session):
                while self._events:
                    yield self._events.popleft()
            session.finish()
            while self._events:
                yield self._events.popleft()
            if lost := session.lost_events():
                yield Lost(lost)

    def _waits(self, session: ScriptSession) -> Iterator[None]:
        """Wait for events until the script is over."""
        end = None if self._seconds is None else time.monotonic() + self._seconds
        child = self._child.fileno() if self._child else -1
        poll = select.poll()
        for descriptor in (*session.fds, self._wake, child):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        session.drain()
        yield
        while not (session.is_over or session.only_special):
            left = None if end is None else max(0.0, end - time.monotonic()) * 1e3
            pauses = [item for item in (left, session.pause_ms()) if item is not None]
            ready = [descriptor for descriptor, _ in poll.poll(min(pauses, default=None))]
            session.drain()
            yield
            is_late = end is not None and time.monotonic() >= end
            if is_late or self._wake in ready or child in ready:
                return

    async def __aiter__(self) -> AsyncIterator[Event]:
        events = iter(self)
        try:
            while (event := await asyncio.to_thread(next, events, None)) is not None:
                yield event
        finally:
            self.stop()
