"""`python -m purebpf.wall`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.wall.options import Options, parse, title

if TYPE_CHECKING:
    from purebpf.report import Profile

__all__ = ["main"]

NAME = "purebpf.wall"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    options = parse(argv)
    return command.run(NAME, lambda: _run(options))


def _run(options: Options) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli import results
    from purebpf.cli.child import Child
    from purebpf.cli.limits import raise_open_files
    from purebpf.cli.names import debuginfod, lined
    from purebpf.cli.stop import Stop
    from purebpf.wall.session import Wall

    fetch = debuginfod(wanted=options.debuginfod)
    with ExitStack() as stack:
        outputs = results.opened(options.to, stack)
        stop = stack.enter_context(Stop())
        child = stack.enter_context(Child(options.command)) if options.command else None
        raise_open_files()  # not before the child is there, which may count on its limit
        clock = stack.enter_context(Wall(options, child.pid if child else 0, fetch))
        with results.live(clock, options.serve, title(options)) as wait:
            results.announce(title(options), options.to, outputs)
            if child is not None:
                child.start()
            wait(*([stop] if child is None else [stop, child]))
        profile, threads = results.named(clock.stop)
        profile = lined(profile, lines=options.lines, fetch=fetch)
        status = child.end() if child else 0
        from purebpf.wall.render import render  # not before everything is measured

        results.write(
            title(options), options.to, outputs, partial(render, profile, threads, options)
        )
        _explain(profile)
    if options.strict and profile.loss.any:
        return command.LOSS
    return status


def _explain(profile: Profile) -> None:
    """How much there was, what it cost, the loss line, and what to do about each loss."""
    from purebpf.cli.loss import paragraphs, tell
    from purebpf.cli.time_loss import cost_line

    unsampled_ns = profile.about["unsampled_ns"]
    assert isinstance(unsampled_ns, int)
    command.say(
        f"event: {profile.about['event']}, {profile.about['samples']} samples; "
        f"{unsampled_ns / 1e9:.3f} s on a CPU of threads that none fell on"
    )
    command.say(cost_line(profile))
    tell(paragraphs(profile))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
