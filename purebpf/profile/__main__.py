"""`python -m purebpf.profile`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.profile.options import Options, parse, title

if TYPE_CHECKING:
    from purebpf.cli.child import Child
    from purebpf.cli.stop import HasFileno
    from purebpf.profile.session import Profiler
    from purebpf.report import Profile

__all__ = ["main"]

NAME = "purebpf.profile"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    options = parse(argv)
    return command.run(NAME, lambda: _run(options))


def _run(options: Options) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli import results
    from purebpf.cli.limits import raise_open_files
    from purebpf.cli.names import debuginfod, lined
    from purebpf.cli.stop import Stop
    from purebpf.profile.session import Profiler

    fetch = debuginfod(wanted=options.debuginfod)
    with ExitStack() as stack:
        outputs = results.opened(options.to, stack)
        stop = stack.enter_context(Stop())
        child = stack.enter_context(_child(options)) if options.command else None
        raise_open_files()  # not before the child is there, which may count on its limit
        profiler = stack.enter_context(Profiler(options, child.pid if child else 0, fetch))
        with results.live(profiler, options.serve, title(options)) as wait:
            results.announce(title(options), options.to, outputs)
            ends: list[HasFileno] = [stop] if child is None else [stop, child]
            if child is not None:
                child.start()
            wait(*ends)
        profile = lined(results.named(profiler.stop), lines=options.lines, fetch=fetch)
        status = child.end() if child else 0
        from purebpf.profile.render import render

        results.write(title(options), options.to, outputs, partial(render, profile, options))
        _explain(profiler, profile)
    if options.strict and profile.loss.any:
        return command.LOSS
    return status


def _child(options: Options) -> Child:
    from purebpf.cli.child import Child

    return Child(options.command)


def _explain(profiler: Profiler, profile: Profile) -> None:
    """The event that was counted, the loss line, and what to do about each loss."""
    from purebpf.cli.loss import paragraphs, tell

    event = profiler.event
    instead = f" (nothing here counts {event.asked})" if event.fell_back else ""
    about = profile.about
    command.say(f"event: {event.name}{instead}")
    command.say(
        f"samples: {about['counted']} counted, {about['idle']} idle, "
        f"{about['filtered']} outside the target"
    )
    if not about["counted"]:
        command.say("no samples: the target did not run on a CPU meanwhile")
    tell(paragraphs(profile))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
