"""`purebpf diff`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.cli.destination import Destination, writing
from purebpf.cli.output import Output
from purebpf.tools.diff.options import DiffOptions, build_parser, parse

if TYPE_CHECKING:
    from purebpf.results import Profile
    from purebpf.results.shape.diff import Difference

__all__ = ["build_parser", "main"]

NAME = "purebpf diff"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: DiffOptions) -> int:
    from purebpf.cli.progress import doing
    from purebpf.cli.source_info import say_left_out
    from purebpf.observe.saved import profile_loader
    from purebpf.results.shape import diff

    with doing("reading the profiles"):
        before, after = profile_loader.read(options.before), profile_loader.read(options.after)
    title = f"{options.before} -> {options.after}"
    difference = diff.compare(before, after, title)
    with Output(options.output) as output, writing(Destination(options.format, options.output)):
        output.write(_render(options, difference, before, after, output.columns))
    say_left_out(before, options.before)
    say_left_out(after, options.after)
    return _judge(options, difference)


def _render(
    options: DiffOptions,
    difference: Difference,
    before: Profile,
    after: Profile,
    columns: int | None,
) -> Iterable[str]:
    from purebpf.cli.event_lines import fit_line
    from purebpf.results.shape import diff

    if options.format == "json":
        return [diff.document(difference)]
    if options.format == "html":
        from purebpf.results.formats import html

        return [html.comparison(before, after, difference.title)]
    return (
        fit_line(line, columns) for line in diff.text(difference, everything=options.everything)
    )


def _judge(options: DiffOptions, difference: Difference) -> int:
    """The exit status, and why."""
    if options.fail_over is None or difference.worst <= options.fail_over:
        return 0
    grown = max(difference.changes, key=lambda change: change.own)
    command.note(
        f"{NAME}: {grown.function.name} grew by {grown.own:.2f} percentage points "
        f"({grown.own_before:.2f} to {grown.own_after:.2f}), more than {options.fail_over:g}"
    )
    return command.LOSS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
