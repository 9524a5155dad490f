"""The common parts of commands that count stacks: targets, pages, names, results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from purebpf.cli import command
from purebpf.cli.destination import (
    Destination,
    ResultOptions,
    encode,
    raise_all,
    say_written,
    writing,
)
from purebpf.cli.output import Output
from purebpf.cli.source_info import add_lines, debuginfod
from purebpf.errors import KernelError
from purebpf.measure.run import Ends, prepare, run
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.cli.live import LivePage
    from purebpf.measure.session import StackSession
    from purebpf.observe.symbols.debuginfod import Debuginfod
    from purebpf.results import Profile

__all__ = ["Run", "measure"]

Result = TypeVar("Result")

_TOP = 5
"""Rows that are shown beside what was written."""


class Run(NamedTuple, Generic[Result]):
    """A measurement that is over, and is still to be written.

    Attributes:
        result: the session's result.
        problems: outputs that could not be written.
        written: the files that were.
    """

    title: str
    options: ResultOptions
    outputs: Sequence[Output]
    session: StackSession[Result]
    result: Result
    ends: Ends
    fetch: Debuginfod | None
    problems: list[KernelError]
    written: list[str]

    def add_lines(self, profile: Profile) -> Profile:
        """The profile with lines, if they are wanted."""
        budget = self.session.budget
        return add_lines(profile, lines=self.options.lines, fetch=self.fetch, budget=budget)

    def end(self) -> int:
        """Wait for the command, if there is one; its status, or 0."""
        return self.ends.status()

    def say_what_was_written(
        self, profile: Profile, brief: Callable[[Profile, int], Iterable[str]] | None = None
    ) -> None:
        """Name the files, and show the five heaviest rows where the terminal has no result.

        Args:
            profile: the result.
            brief: returns so many rows of it, as lines; None: of the functions.
        """
        for path in self.written:
            say_written(path)
        if len(self.written) == len(self.outputs) and profile.total:
            from purebpf.results.formats import answer

            for line in (brief or answer.functions)(profile, _TOP):
                command.say(line.rstrip("\n"))

    def write(self, render: Callable[[str], Iterable[str | bytes]]) -> None:
        """Write the output of `render` in each format.

        A text begins with the title; standard output has that already. An output that fails, as on
        a full disk, keeps no other from being complete.
        """
        for output, destination in zip(self.outputs, self.options.to, strict=True):
            try:
                with writing(destination):
                    pieces = render(destination.format)
                    if destination.format == "text":
                        title = "" if destination.path is None else f"{self.title}\n"
                        pieces = [title, "\n", *pieces]
                    output.write(encode(destination, pieces))
                output.finish()
                if destination.path is not None:
                    self.written.append(destination.path)
            except KernelError as problem:
                output.abandon()
                self.problems.append(problem)


@contextmanager
def measure(
    make: Callable[[int, Debuginfod | None], StackSession[Result]],
    words: tuple[str, ...],
    title: str,
    options: ResultOptions,
    take: Callable[[Any], None] = lambda _: None,
    *,
    duration_s: float | None = None,
    marks_idle: bool = False,
) -> Iterator[Run[Result]]:
    """Measure, until it is over; each output appears when it is written.

    Args:
        make: makes a session, from the number of a child that waits to execute the command (else 0)
            and a function that fetches debug files.
        words: of the command to run; () for none.
        title: heads the output.
        options: the options for the result.
        take: reads the counts of a session before the live page shows them, for sessions that do
            not read them as they are shown.
        duration_s: seconds until it is over; None: until a signal, or until the command ends.
        marks_idle: the live page tells waits for something to do from the others.

    Raises:
        KernelError: an output could not be written; the page's address cannot be bound.
        PurebpfError: the session's error.
    """
    from purebpf.cli.countdown import counting_down  # which --help does not need

    fetch = debuginfod(wanted=options.debuginfod)
    with ExitStack() as stack:
        outputs = [stack.enter_context(Output(destination.path)) for destination in options.to]
        session, ends = stack.enter_context(prepare(lambda pid: make(pid, fetch), words))
        page = None
        if options.serve is not None:
            page = stack.enter_context(_serve(options.serve, title, marks_idle=marks_idle))
        _announce(title, options.to, outputs)
        result = run(
            session,
            ends,
            None if page is None else partial(_show, page, session, ends, take),
            wait=None if page is None else partial(session.wait, at_most_s=1),
            watching=page or counting_down(duration_s, words),
            naming=_naming(session),
        )
        done = Run(title, options, outputs, session, result, ends, fetch, [], [])
        yield done
        raise_all(done.problems)


def _serve(where: tuple[str, int], title: str, *, marks_idle: bool) -> LivePage:
    from purebpf.cli.live import LivePage

    shown: Callable[[Profile], Profile] | None = None
    if marks_idle:
        from purebpf.cli.places import mark_idle

        shown = mark_idle
    title = title.removesuffix("... Hit Ctrl-C to end.")  # a browser cannot
    page = LivePage(where, title, shown=shown)
    command.say(f"live flame graph: {page.url}")
    return page


def _show(
    page: LivePage, session: StackSession[object], ends: Ends, take: Callable[[Any], None]
) -> None:
    """Show the changes since the last time; Ctrl-C does not wait for their names."""
    from purebpf.measure.naming import naming_until

    with naming_until(ends.stop, session.budget):
        take(session)
        page.show(session)


@contextmanager
def _naming(session: StackSession[object]) -> Iterator[None]:
    """Explain the delay on a terminal; Ctrl-C ends it."""
    from purebpf.cli.progress import doing
    from purebpf.observe.symbols.interruptible import interruptible

    with doing("looking up names"), interruptible(session.budget):
        yield


def _announce(title: str, to: Sequence[Destination], outputs: Sequence[Output]) -> None:
    """Print the headline where the user looks; bcc's folded output does not have one."""
    for output, destination in zip(outputs, to, strict=True):
        if output.is_stdout:
            if destination.format == "text":
                output.write([f"{title}\n"])
            return
    command.say(title)
