"""`ProcessWatch`: the processes of a run, for a tracer of their stacks.

    records of processes -followed-> mappings, names, cgroups
                         -catch_up-> the walker of stacks, Python's interpreters
    traces -make_symbolizer, name_stacks-> named stacks

Every session of stacks holds one. Modules that only names need are imported when it names: see
docs/design/0002-start.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from purebpf.closable import Closing
from purebpf.measure import wait
from purebpf.measure.stop import HasFileno
from purebpf.observe.processes.process_tracker import Followed
from purebpf.observe.runtimes.cpython.running import running

if TYPE_CHECKING:
    from purebpf.loader.host.debug_files import Fetch
    from purebpf.measure.target_ends import TargetEnds
    from purebpf.observe.runtimes.cpython.python_tables import PythonTables
    from purebpf.observe.symbols.symbolizer import Symbolizer
    from purebpf.observe.unwind.user_stacks import Trace, UserStacks
    from purebpf.results import Cause
    from purebpf.results.build.stored_stacks import Stacks
    from purebpf.symbols.address_spaces import Earlier
    from purebpf.symbols.budget import Budget

__all__ = ["ProcessWatch", "StackWalks", "name_stacks"]

_PUBLISHING_S = 0.5
"""The start of a run of the whole machine waits for interpreters for this time at most."""


class StackWalks(Protocol):
    """The kind of walk: with tables or not, with Python frames or not."""

    @property
    def walking(self) -> UserStacks | None:
        """None: the kernel walks."""

    @property
    def python(self) -> PythonTables | None:
        """None: without Python frames."""


class ProcessWatch(Closing):
    """Follows the processes of a run, and tells the tracer of stacks about them.

    First it publishes the interpreters that run already, see `publish_first`. If the run measures
    all processes, the first `wait` publishes the interpreters that this left.

    Args:
        walks: the tracer; attached, and not started.
        pids: the processes of the run; empty for all.
        command_pid: a child that waits to execute a command, the only process of the run; or 0.
        only: follow only these processes; None: all.
        is_patient: as `Followed`.

    Attributes:
        followed: the processes from now on.

    Raises:
        KernelError: as `Followed`.
    """

    def __init__(
        self,
        walks: StackWalks,
        pids: Collection[int],
        command_pid: int = 0,
        *,
        only: Collection[int] | None = None,
        is_patient: bool = False,
    ) -> None:
        publish_first(lambda: walks.python, pids, command_pid)
        if walks.walking is not None and walks.walking.java is not None and not command_pid:
            walks.walking.java.publish_running(pids)
        self.followed = followed = Followed(command_pid, only, is_patient=is_patient)
        self._walks = walks
        self._publishes = not (pids or command_pid)
        if walks.walking is not None:
            walks.walking.catch_up, walks.walking.ask = self.catch_up, followed.ask

    def close(self) -> None:
        """Follow no longer; the history of processes stays."""
        self.followed.close()

    @property
    def fds(self) -> set[int]:
        """Readable when records or copied stacks have come."""
        walking, python = self._walks.walking, self._walks.python
        rings = (*(walking.fds if walking else ()), *(python.fds if python else ()))
        return {*self.followed.fds, *rings}

    @property
    def walking(self) -> UserStacks | None:
        """The finisher of stacks; None: the kernel walks."""
        return self._walks.walking

    def java_causes(self) -> tuple[Cause, ...]:
        """Return the losses of Java frames, zero or not; () if there was no JVM.

        Raises:
            KernelError: a map could not be read.
        """
        java = None if self.walking is None else self.walking.java
        return () if java is None else java.causes()

    def look_again_s(self) -> float:
        """Seconds until `catch_up` is due without a record.

        A process becomes an interpreter, and copies its code, silently.
        """
        python, after_s = self._walks.python, self.followed.look_again_s()
        if self._walks.walking is not None:
            after_s = min(after_s, self._walks.walking.look_again_s())
        return after_s if python is None else min(after_s, python.interpreters.look_again_s())

    def earlier(self, pid: int, time_ns: int) -> Earlier | None:
        """Return the mappings of a process at a time."""
        return self.followed.spaces.earlier(pid, time_ns)

    def catch_up(self) -> None:
        """Read the records of processes up to now."""
        walking, python = self._walks.walking, self._walks.python
        if walking is None:
            self.followed.drain()
        else:
            published: Container[int] = () if python is None else python.interpreters.published
            if walking.java is not None:
                published = _Either(published, walking.java.published)
            self.followed.drain(self._feed, walking.followed, published)

    def collect(self) -> None:
        """Empty the rings of copies, in the middle of long work."""
        if self._walks.walking is not None:
            self._walks.walking.collect()

    def _feed(self, record: object) -> None:
        if self._walks.walking is not None:
            self._walks.walking.feed(record)
        if self._walks.python is not None:
            self._walks.python.interpreters.feed(record)

    def publish_everyone(self) -> None:
        """Publish the interpreters of all processes, once: later ones are seen as they start."""
        python = self._walks.python
        if python is not None and self._publishes:
            self._publishes = False
            python.interpreters.publish_running(pause=self.collect)

    def wait(
        self,
        ends: Iterable[HasFileno],
        drain: Callable[[], None],
        *,
        over: float | None,
        at_most_s: float | None = None,
        targets: TargetEnds | None = None,
        sources: Collection[int] = (),
    ) -> bool:
        """Sleep until moment `over`, until one of `ends` is readable or all `targets` have ended.

        Args:
            ends: end the run.
            drain: called when `fds` or `sources` are readable, and when a look is due.
            over: by time.monotonic(); None never comes.
            at_most_s: a pause; None: there is none.
            targets: the measured processes; None: their ends do not matter.
            sources: more descriptors that `drain` reads.

        Returns:
            Whether the run is over; False after a pause of `at_most_s` seconds.
        """
        self.publish_everyone()
        pause = None if at_most_s is None else time.monotonic() + at_most_s
        return wait.until(
            over,
            ends,
            pause=pause,
            targets=targets,
            sources={*self.fds, *sources},
            drain=drain,
            every_s=self.look_again_s,
        )

    def make_symbolizer(
        self, fetch: Fetch | None = None, budget: Budget | None = None
    ) -> Symbolizer:
        """Return names for addresses of the processes that were seen.

        Args:
            fetch: gets debug files that are not on this machine
                (`purebpf.observe.symbols.debuginfod`).
            budget: pays for the names.
        """
        from purebpf.observe.symbols.symbolizer import Symbolizer

        symbolizer = Symbolizer(self.followed.spaces, fetch=fetch, budget=budget)
        symbolizer.python = self._walks.python
        walking = self._walks.walking
        if walking is not None:
            symbolizer.opened, symbolizer.java = walking, walking.java
        return symbolizer


class _Either:
    """The members of two containers."""

    def __init__(self, one: Container[int], other: Container[int]) -> None:
        self._one, self._other = one, other

    def __contains__(self, member: object) -> bool:
        return member in self._one or member in self._other


def publish_first(
    find_python: Callable[[], PythonTables | None], pids: Collection[int], command_pid: int
) -> None:
    """Publish the interpreters that run before a run starts: later ones are seen as they start.

    Stacks that a process has before its interpreter is published lack their Python frames.

    Args:
        find_python: returns the reader of Python frames, or None; called, and its modules imported,
            only if an interpreter runs.
        pids: the processes of the run; empty for all.
        command_pid: a child that waits to execute a command, the only process of the run; or 0.
    """
    interpreters = [] if command_pid else pids or running()
    python = find_python() if interpreters else None
    if python is not None:
        limit_s = None if pids else _PUBLISHING_S
        python.interpreters.publish_running(interpreters, limit_s=limit_s)


def name_stacks(traces: Mapping[int, Trace], symbolizer: Symbolizer) -> Stacks:
    """Return stacks by number, with names resolved on access: later, some may have names."""
    from purebpf.results.build.stored_stacks import Stacks

    addresses = {number: trace.addresses for number, trace in traces.items()}
    ends = {number: (trace.reason, trace.guessed) for number, trace in traces.items()}
    return Stacks(addresses, symbolizer, ends)
