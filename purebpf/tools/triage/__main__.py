"""`purebpf triage`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from purebpf.cli import command
from purebpf.cli.output import Output
from purebpf.tools.triage.options import Options, build_parser, parse

__all__ = ["build_parser", "main"]

NAME = "purebpf triage"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: Options) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli.loss import of_loss, say_each, words_of_loss
    from purebpf.measure.run import prepare, run
    from purebpf.tools.triage.render import document, pieces
    from purebpf.tools.triage.session import Triage

    with Output(options.output) as output, prepare(partial(Triage, options.duration_s)) as prepared:
        session, ends = prepared
        command.say(f"Looking at the whole machine for {options.duration_s:g} s... Ctrl-C: now.")
        findings = run(session, ends)
        output.write(
            [document(findings)] if options.format == "json" else pieces(findings, options.lines)
        )
    lost = False
    for name, (loss, unit) in findings.losses.items():
        lost |= loss.any
        if options.verbose:
            say_each([f"{name} {of_loss(loss, unit)[0]}"])
        elif loss.any:
            say_each([f"{name}: {line}" for line in words_of_loss(loss, unit)])
    if not lost and not options.verbose:
        command.say("lost: nothing")
    return command.LOSS if options.strict and lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
