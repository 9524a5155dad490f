"""`python -m purebpf.profile`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.cli.output import Output
from purebpf.profile.options import Options, parse, title

if TYPE_CHECKING:
    from purebpf.cli.child import Child
    from purebpf.cli.live import LivePage
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
    from purebpf.cli.limits import raise_open_files
    from purebpf.cli.stop import Stop
    from purebpf.profile.session import Profiler

    with ExitStack() as stack:
        outputs = [stack.enter_context(Output(each.path)) for each in options.to]
        stop = stack.enter_context(Stop())
        child = stack.enter_context(_child(options)) if options.command else None
        raise_open_files()  # not before the child is there, which may count on its limit
        profiler = stack.enter_context(Profiler(options, child.pid if child else 0))
        live = stack.enter_context(_served(options)) if options.serve else None
        _announce(options, outputs)
        ends: list[HasFileno] = [stop] if child is None else [stop, child]
        if child is not None:
            child.start()
        if live is None:
            profiler.wait(*ends)
        else:
            _show(profiler, live, ends)
        profile = _stopped(profiler)
        status = child.end() if child else 0
        _write(profile, options, outputs)
        _explain(profiler, profile)
    if options.strict and profile.loss.any:
        return command.LOSS
    return status


def _child(options: Options) -> Child:
    from purebpf.cli.child import Child

    return Child(options.command)


def _served(options: Options) -> LivePage:
    from purebpf.cli.live import LivePage

    assert options.serve is not None
    live = LivePage(options.serve, title(options))
    command.say(f"live flame graph: {live.url}")
    return live


def _show(profiler: Profiler, live: LivePage, ends: Sequence[HasFileno]) -> None:
    """Show each second, until the end."""
    while not profiler.wait(*ends, at_most_s=1):
        profiler.take()
        live.send(profiler.last)
        live.answer(profiler.so_far)


def _stopped(profiler: Profiler) -> Profile:
    from purebpf.cli.progress import doing

    with doing("looking up names"):
        return profiler.stop()


def _write(profile: Profile, options: Options, outputs: Sequence[Output]) -> None:
    from purebpf.profile.render import render

    for output, destination in zip(outputs, options.to, strict=True):
        output.write(render(profile, options, destination))


def _announce(options: Options, outputs: Sequence[Output]) -> None:
    """Say what is going on, where the user looks; bcc's folded output has no such line."""
    line = title(options)
    for output, destination in zip(outputs, options.to, strict=True):
        if output.is_stdout:
            if destination.format == "text":
                output.write([f"{line}\n"])
            return
    command.say(line)


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
