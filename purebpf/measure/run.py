"""The one order of the steps of every command's measurement.

    with prepare(make, words) as (session, ends):    signals, child, session
        result = run(session, ends, on_tick)         release the child, wait, tick, stop
        status = ends.status()                       the command's

The caller does the rest: it writes the result, and reports the losses.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from purebpf.measure.limits import raise_open_files, raised_priority
from purebpf.measure.session import Session
from purebpf.measure.stop import HasFileno, Stop
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.measure.child import Child

__all__ = ["Ends", "collecting", "prepare", "run"]

Result = TypeVar("Result")
SomeSession = TypeVar("SomeSession", bound=Session[object])  # a string would be compiled

_HURRY_S = 2.0
"""CPU seconds of the end that go before other programs: somebody waits for the answer."""


class Ends(NamedTuple):
    """The events that end a run before its duration is over: a signal, or the end of the command.

    `reader` has its descriptor in an error state once nothing reads the output any more.
    """

    stop: Stop
    child: Child | None
    reader: HasFileno | None = None

    @property
    def sources(self) -> tuple[HasFileno, ...]:
        """The descriptors to wait for."""
        return tuple(end for end in self if end is not None)

    def status(self) -> int:
        """End the command, if there is one; its status, or 0."""
        return self.child.end() if self.child else 0


@contextmanager
def prepare(
    make: Callable[[int], SomeSession],
    words: Sequence[str] = (),
    reader: HasFileno | None = None,
) -> Iterator[tuple[SomeSession, Ends]]:
    """Catch the signals that end a run, fork the command, and start the session.

    Args:
        make: a session, of the number of the child that waits to execute the command (0: none).
        words: the command; () for none.
        reader: of a command that writes while it measures: the pipe that ends the run.

    Raises:
        KernelError: there can be no more processes or descriptors.
        PurebpfError: raised by the session when its context is entered.
    """
    with ExitStack() as stack:
        stop = stack.enter_context(Stop())
        child = stack.enter_context(_fork(words)) if words else None
        raise_open_files()  # not before the child is there, which may count on its limit
        session = make(child.pid if child else 0)
        with raised_priority():
            stack.enter_context(session)
        yield session, Ends(stop, child, reader)


def run(
    session: Session[Result],
    ends: Ends,
    on_tick: Callable[[], object] | None = None,
    *,
    wait: Callable[..., bool] | None = None,
    watching: AbstractContextManager[object] | None = None,
    naming: AbstractContextManager[object] | None = None,
) -> Result:
    """Release the command, wait until it is over, and stop the session.

    Args:
        session: runs already.
        ends: of `prepare`.
        on_tick: is called whenever `wait` returns False.
        wait: how to wait, if not by `session.wait`, which says when a tick is due.
        watching: a context around the waiting: a page or a screen that shows it.
        naming: a context around the end, which may take long.

    Returns: The session's result.

    Raises:
        CommandError: the command cannot be executed.
        KernelError: the session cannot be read.
    """
    wait = wait or session.wait
    with watching or nullcontext():
        if ends.child is not None:
            ends.child.start()
        if on_tick is None:
            _wait_promptly(wait, ends)
        else:
            with collecting():
                while not _wait_promptly(wait, ends):
                    on_tick()
    with naming or nullcontext(), raised_priority(at_most_s=_HURRY_S):
        return session.stop()


def _wait_promptly(wait: Callable[..., bool], ends: Ends) -> bool:
    with raised_priority():
        return wait(*ends.sources)


@contextmanager
def collecting() -> Iterator[None]:
    """Collect cyclic garbage within this context, where the memory of hours would add up.

    Commands start without (`purebpf.cli.command.run`). Earlier objects are not searched again and
    again: they stay until the end anyway.
    """
    was_enabled = gc.isenabled()
    gc.freeze()
    gc.enable()
    try:
        yield
    finally:
        if not was_enabled:
            gc.disable()
        gc.unfreeze()


def _fork(words: Sequence[str]) -> Child:
    from purebpf.measure.child import Child  # a run without a command does not need it

    return Child(words)
