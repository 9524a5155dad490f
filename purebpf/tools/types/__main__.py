"""`purebpf types`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.cli.output import Output
from purebpf.tools.types.options import View, build_parser, parse
from purebpf.tools.types.request import TypesOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from purebpf.observe.symbols.debuginfod import Debuginfod
    from purebpf.tools.types.result import DataTypes

__all__ = ["build_parser", "main"]

NAME = "purebpf types"
_MISSING = """\
the decoder of x86-64 instructions is missing: no module iced_x86. \
Install it with: pip install 'purebpf[types]'"""


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: TypesOptions, view: View) -> int:
    # what --help and a misspelt option need not pay for
    from importlib.util import find_spec

    if find_spec("iced_x86") is None:
        command.say(f"{NAME}: {_MISSING}")
        return 1
    from purebpf.cli.source_info import debuginfod, say_problems

    fetch = debuginfod(wanted=view.debuginfod)
    status = _read(view, fetch) if view.path else _sample(options, view, fetch)
    say_problems(fetch)
    return status


def _sample(options: TypesOptions, view: View, fetch: Debuginfod | None) -> int:
    from purebpf.cli.countdown import counting_down
    from purebpf.measure.run import prepare, run
    from purebpf.observe.symbols.interruptible import interruptible
    from purebpf.tools.types.session import TypeSampler

    make = partial(TypeSampler, options, fetch=fetch)
    with (
        Output(view.output) as output,
        prepare(make, options.command, output.reader) as (sampler, ends),
    ):
        if options.duration_s is None and not options.command:
            command.say("Sampling the data that code touches... Hit Ctrl-C to end.")
        result = run(
            sampler,
            ends,
            sampler.drain,
            watching=counting_down(options.duration_s, options.command),
            naming=interruptible(sampler.budget),
        )
        status = ends.status()
        _show(result, view, output)
    return command.LOSS if view.strict and result.loss.any else status


def _read(view: View, fetch: Debuginfod | None) -> int:
    from purebpf.tools.types.recorded import read

    result = read(view.path, view.event, fetch)
    with Output(view.output) as output:
        _show(result, view, output)
    return command.LOSS if view.strict and result.loss.any else 0


def _show(result: DataTypes, view: View, output: Output) -> None:
    from purebpf.cli.loss import explain_loss
    from purebpf.tools.types.render import closing_lines

    output.write(_pieces(result, view))
    for line in closing_lines(result):
        command.say(line)
    explain_loss(result.loss, "samples", verbose=view.verbose)


def _pieces(result: DataTypes, view: View) -> Iterable[str]:
    from purebpf.tools.types.render import render, render_struct

    if not view.struct:
        return render(result, view.format, view.by, view.top)
    found = [struct for struct in result.structs if struct.name == view.struct]
    if not found:
        command.note(f"no sample touches a struct {view.struct}")
    return (line for struct in found for line in render_struct(struct, result.samples))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
