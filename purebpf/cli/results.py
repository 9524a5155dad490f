"""What commands that count stacks share from the attaching on: pages, names, results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

from purebpf.cli import command
from purebpf.cli.destination import Destination, encoded
from purebpf.cli.output import Output

if TYPE_CHECKING:
    from purebpf.cli.live import Shown

__all__ = ["announce", "live", "named", "opened", "write"]

Found = TypeVar("Found")


def opened(to: Sequence[Destination], stack: ExitStack) -> list[Output]:
    """The output of each destination; `stack` closes them.

    Raises:
        KernelError: one of them cannot be written.
    """
    return [stack.enter_context(Output(each.path)) for each in to]


@contextmanager
def live(
    measured: Shown, where: tuple[str, int] | None, title: str
) -> Iterator[Callable[..., object]]:
    """How to wait for the end of a measurement; with a page that shows it, if `where` is given.

    Raises:
        KernelError: nobody can listen there.
    """
    if where is None:
        yield measured.wait
        return
    from purebpf.cli.live import LivePage, show

    with LivePage(where, title) as page:
        command.say(f"live flame graph: {page.url}")
        yield lambda *ends: show(measured, page, ends)


def named(stop: Callable[[], Found]) -> Found:
    """What `stop` returns; on a terminal, what takes so long is told."""
    from purebpf.cli.progress import doing

    with doing("looking up names"):
        return stop()


def announce(title: str, to: Sequence[Destination], outputs: Sequence[Output]) -> None:
    """Say what is going on, where the user looks; bcc's folded output has no such line."""
    for output, destination in zip(outputs, to, strict=True):
        if output.is_stdout:
            if destination.format == "text":
                output.write([f"{title}\n"])
            return
    command.say(title)


def write(
    title: str,
    to: Sequence[Destination],
    outputs: Sequence[Output],
    render: Callable[[str], Iterable[str | bytes]],
) -> None:
    """Write what `render` makes in each format.

    A text begins with the title; standard output has that already.
    """
    for output, destination in zip(outputs, to, strict=True):
        pieces = render(destination.format)
        if destination.format == "text":
            pieces = ["" if destination.path is None else f"{title}\n", "\n", *pieces]
        output.write(encoded(destination, pieces))
