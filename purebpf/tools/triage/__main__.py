"""`purebpf triage`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from purebpf.cli import command
from purebpf.cli.output import Output
from purebpf.tools.triage.options import TriageOptions, build_parser, parse

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from purebpf.findings.facts import Facts
    from purebpf.results import Loss

__all__ = ["FOUND", "build_parser", "main"]

NAME = "purebpf triage"

_STORE, _SINCE_S = "/var/lib/purebpf", 600.0
"""The agent's state directory, and the time that --from alone looks back."""
_VAGUE = frozenset({"waits"})
"""Kinds that need the side of a connection, which stored windows do not have."""
FOUND = 10
"""There are findings."""
_Measured: TypeAlias = "tuple[Facts, list[tuple[str, Loss, str]], AbstractSet[int] | None]"
"""The facts, their losses, and the processes that matter; None: all."""


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: TriageOptions) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.findings.find import find, find_about
    from purebpf.tools.triage.render import document, lines

    with Output(options.output) as output:
        facts, losses, pids = _facts(options)
        if options.save:
            _save(facts, options.save)
        others = None
        if pids is None:
            findings = find(facts)
        else:
            findings, others = find_about(facts, pids)
        if options.is_stored:  # commands measure the present
            show = ("view", options.folder or _STORE)
            findings = [one._replace(command=show) for one in findings if one.kind not in _VAGUE]
        if options.format == "json":
            output.write([document(facts, findings, others)])
        else:
            output.write(lines(facts, findings, others))
    is_live = options.load is None and not options.is_stored
    lost = _say_losses(losses, verbose=options.verbose) if is_live else False
    if options.strict and lost:
        return command.LOSS
    return FOUND if any(not finding.is_busy for finding in findings) else 0


def _facts(options: TriageOptions) -> _Measured:
    from purebpf.tools.triage.target import processes_called

    if options.load:
        facts = _load(options.load)
    elif not options.is_stored:
        return _measure(options)
    else:
        from purebpf.tools.triage.stored_windows import facts_of, read_windows

        windows = read_windows(options.folder or _STORE, options.since_s or _SINCE_S)
        facts = facts_of(windows, os.cpu_count() or 1)
    name = options.container_name
    return facts, [], None if name is None else processes_called(facts.processes, name)


def _measure(options: TriageOptions) -> _Measured:
    from purebpf.measure.run import prepare, run
    from purebpf.tools.triage.countdown import countdown
    from purebpf.tools.triage.session import Triage
    from purebpf.tools.triage.target import ChosenProcesses

    chosen = ChosenProcesses(options) if options.has_target else None
    triage = partial(Triage, options.duration_s)
    with prepare(triage) as (session, ends), countdown() as show:
        facts = run(session, ends, lambda: show(session.left_s))
    losses = [(name, profile.loss, unit) for name, profile, unit in session.profiles]
    return facts, losses, None if chosen is None else chosen.in_all()


def _load(path: str) -> Facts:
    from purebpf.errors import FormatError, KernelError
    from purebpf.files.input_file import open_input
    from purebpf.findings.codec import decode_facts

    try:
        with open(path, encoding="utf-8", opener=open_input) as file:
            return decode_facts(json.load(file))
    except ValueError as error:
        raise FormatError(path, "document", str(error)) from None
    except OSError as error:
        raise KernelError("open(2)", error.errno or 0, f"facts {path}") from None


def _save(facts: Facts, path: str) -> None:
    from purebpf.findings.codec import encode_facts

    with Output(path) as output:
        output.write([json.dumps(encode_facts(facts))])


def _say_losses(losses: list[tuple[str, Loss, str]], *, verbose: bool) -> bool:
    from purebpf.cli.loss import of_loss, say_each, words_of_loss

    lost = False
    for name, loss, unit in losses:
        lost |= loss.any
        if verbose:
            say_each([f"{name} {of_loss(loss, unit)[0]}"])
        elif loss.any:
            say_each([f"{name}: {line}" for line in words_of_loss(loss, unit)])
    if not lost and not verbose:
        command.say("lost: nothing")
    return lost


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
