"""`python -m purebpf.offcpu`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.cli.output import Output
from purebpf.offcpu.options import Options, parse, title

if TYPE_CHECKING:
    from purebpf.report import Profile

__all__ = ["main"]

NAME = "purebpf.offcpu"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    options = parse(argv)
    return command.run(NAME, lambda: _run(options))


def _run(options: Options) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli.child import Child
    from purebpf.cli.destination import Destination, encoded
    from purebpf.cli.limits import raise_open_files
    from purebpf.cli.stop import Stop
    from purebpf.offcpu.render import render
    from purebpf.offcpu.session import OffCpu

    with ExitStack() as stack:
        file = None
        if options.format == "perf.data":
            from purebpf.cli.data_file import DataFile

            file = stack.enter_context(DataFile(options.output or ""))
        output = stack.enter_context(Output(None if file else options.output))
        stop = stack.enter_context(Stop())
        child = stack.enter_context(Child(options.command)) if options.command else None
        raise_open_files()  # not before the child is there, which may count on its limit
        waiting = stack.enter_context(OffCpu(options, child.pid if child else 0))
        _announce(options, output)
        if child is not None:
            child.start()
        waiting.wait(*([stop] if child is None else [stop, child]))
        profile = waiting.stop()
        status = child.end() if child else 0
        if file is None:
            pieces = render(profile, options)
            if options.format != "text":  # its title is written already
                pieces = encoded(Destination(options.format, options.output), pieces)
            output.write(pieces)
        else:
            waiting.write(file, profile)
            file.commit()
        _explain(profile)
    if options.strict and profile.loss.any:
        return command.LOSS
    return status


def _announce(options: Options, output: Output) -> None:
    """Say what is going on, where the user looks; bcc's folded output has no such line."""
    line = title(options)
    if options.format == "text":
        output.write([f"{line}\n"])
    if not output.is_stdout or options.format == "perf.data":
        command.say(line)


def _explain(profile: Profile) -> None:
    """How much there was, what it cost, the loss line, and what to do about each loss."""
    from purebpf.cli.loss import paragraphs, tell
    from purebpf.cli.time_loss import cost_line

    still = sum(row.weight for row in profile.rows() if row.marks.is_open)
    command.say(
        f"off-CPU: {profile.total / 1e9:.3f} s in {profile.about['elapsed_s']} s; "
        f"{still / 1e9:.3f} s not over at the end (~)"
    )
    command.say(cost_line(profile))
    tell(paragraphs(profile))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
