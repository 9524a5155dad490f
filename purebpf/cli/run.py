"""What commands that count stacks share: targets, pages, names, results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from purebpf.cli import command
from purebpf.cli.destination import Destination, ResultOptions, encoded, raise_all, writing
from purebpf.cli.output import Output
from purebpf.cli.source_info import debuginfod, lined
from purebpf.errors import KernelError
from purebpf.measure.limits import raise_open_files
from purebpf.measure.session import Session
from purebpf.measure.stop import Stop

if TYPE_CHECKING:
    from purebpf.kernel.symbolize.debuginfod import Debuginfod
    from purebpf.measure.child import Child
    from purebpf.results import Profile

__all__ = ["Run", "measured"]

Found = TypeVar("Found")


SomeSession = TypeVar("SomeSession", bound=Session)


class Run(NamedTuple, Generic[SomeSession]):
    """A measurement that is over, and is still to be named and written."""

    title: str
    options: ResultOptions
    outputs: Sequence[Output]
    session: SomeSession
    child: Child | None
    fetch: Debuginfod | None
    problems: list[KernelError]

    def named(self, stop: Callable[[], Found]) -> Found:
        """What `stop` returns; says on a terminal what takes so long. Ctrl-C ends the naming."""
        from purebpf.cli.progress import doing
        from purebpf.measure.naming import interruptible

        with doing("looking up names"), interruptible(self.session.budget):
            return stop()

    def lined(self, profile: Profile) -> Profile:
        """The profile with lines, if they are wanted."""
        budget = self.session.budget
        return lined(profile, lines=self.options.lines, fetch=self.fetch, budget=budget)

    def end(self) -> int:
        """Wait for the command, if there is one; its status, or 0."""
        return self.child.end() if self.child else 0

    def write(self, render: Callable[[str], Iterable[str | bytes]]) -> None:
        """Write what `render` makes in each format.

        A text begins with the title; standard output has that already. What one output cannot
        take, as on a full disk, keeps no other from being complete.
        """
        for output, destination in zip(self.outputs, self.options.to, strict=True):
            try:
                with writing(destination):
                    pieces = render(destination.format)
                    if destination.format == "text":
                        title = "" if destination.path is None else f"{self.title}\n"
                        pieces = [title, "\n", *pieces]
                    output.write(encoded(destination, pieces))
                output.finish()
            except KernelError as problem:
                output.abandon()
                self.problems.append(problem)


@contextmanager
def measured(
    make: Callable[[int, Debuginfod | None], SomeSession],
    words: tuple[str, ...],
    title: str,
    options: ResultOptions,
) -> Iterator[Run[SomeSession]]:
    """Measure, until it is over; each output appears when it is written.

    Args:
        make: a session, of the number of a child that waits to execute the command (else 0) and
            what gets debug files.
        words: of the command to run; () for none.
        title: heads the output.
        options: what becomes of the result.

    Raises:
        KernelError: an output could not be written; nobody can listen where the page is wanted.
        PurebpfError: what the session raises.
    """
    fetch = debuginfod(wanted=options.debuginfod)
    with ExitStack() as stack:
        outputs = [stack.enter_context(Output(each.path)) for each in options.to]
        stop = stack.enter_context(Stop())
        child = stack.enter_context(_child(words)) if words else None
        raise_open_files()  # not before the child is there, which may count on its limit
        session = make(child.pid if child else 0, fetch)
        stack.enter_context(session)
        with _live(session, options.serve, title) as wait:
            _announce(title, options.to, outputs)
            if child is not None:
                child.start()
            wait(*([stop] if child is None else [stop, child]))
        run = Run(title, options, outputs, session, child, fetch, [])
        yield run
        raise_all(run.problems)


def _child(words: tuple[str, ...]) -> Child:
    from purebpf.measure.child import Child

    return Child(words)


@contextmanager
def _live(
    measured: Session, where: tuple[str, int] | None, title: str
) -> Iterator[Callable[..., object]]:
    """How to wait for the end of a measurement; with a page that shows it, if `where` is given."""
    if where is None:
        yield measured.wait
        return
    from purebpf.cli.live import LivePage, show

    with command.collecting(), LivePage(where, title) as page:
        command.say(f"live flame graph: {page.url}")
        yield lambda *ends: show(measured, page, ends)


def _announce(title: str, to: Sequence[Destination], outputs: Sequence[Output]) -> None:
    """Say what is going on, where the user looks; bcc's folded output has no such line."""
    for output, destination in zip(outputs, to, strict=True):
        if output.is_stdout:
            if destination.format == "text":
                output.write([f"{title}\n"])
            return
    command.say(title)
