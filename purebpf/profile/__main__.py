"""`python -m purebpf.profile`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.profile.options import build_parser, parse
from purebpf.profile.request import title

if TYPE_CHECKING:
    from purebpf.cli.destination import ResultOptions
    from purebpf.profile.request import Options
    from purebpf.results import Profile

__all__ = ["build_parser", "main"]

NAME = "purebpf.profile"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: Options, view: ResultOptions) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli import run as results
    from purebpf.profile.session import Profiler

    with results.measure(partial(Profiler, options), options.command, title(options), view) as run:
        profile = run.add_lines(run.result)
        status = run.end()
        run.write(partial(_render, profile, view))
        _explain(profile)
    return command.LOSS if view.strict and profile.loss.any else status


def _render(profile: Profile, view: ResultOptions, format_name: str) -> Iterable[str | bytes]:
    """The pieces of one output, without the title."""
    from purebpf.results.formats import registry  # not before everything is measured

    style = registry.Style(view.delimited, view.annotations, view.addresses)
    return registry.write(profile, format_name, style)


def _explain(profile: Profile) -> None:
    """The event that was counted, the loss line, and what to do about each loss."""
    from purebpf.cli.loss import paragraphs, tell
    from purebpf.cli.user_stacks import describe

    about = profile.about
    instead = (
        f" (this machine has no PMU event {about['event_asked']})" if "event_asked" in about else ""
    )
    command.say(f"event: {about['event']}{instead}")
    command.say(
        f"samples: {about['counted']} counted, {about['idle']} idle, "
        f"{about['filtered']} outside the target"
    )
    if line := describe(profile):
        command.say(line)
    if not about["counted"]:
        command.say("no samples: the target did not run on a CPU during the run")
    tell(paragraphs(profile))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
