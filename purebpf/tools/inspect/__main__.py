"""`purebpf inspect`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from purebpf.cli import command
from purebpf.tools.inspect.options import build_parser, parse
from purebpf.tools.inspect.request import InspectOptions
from purebpf.tuples import NamedTuple

__all__ = ["build_parser", "main"]

NAME = "purebpf inspect"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: InspectOptions) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli.output import Output

    if options.stubs:
        from purebpf.build.stubs import stubs
        from purebpf.tools.inspect.session import read

        with Output(options.output) as output:
            output.write([stubs(read(options.path))])
        return 0
    if options.disassemble:
        from purebpf.tools.inspect.session import code

        with Output(options.output) as output:
            output.write(["\n".join(code(options.path, options.programs))])
        return 0
    if options.btf_for is not None:
        from purebpf.cli.destination import say_written
        from purebpf.tools.inspect.session import few_types

        with Output(options.output) as output:
            output.write([few_types(options.path, options.btf_for)])
        say_written(str(options.output))
        return 0
    from purebpf.results.model.width import fold
    from purebpf.tools.inspect.render import document, lines
    from purebpf.tools.inspect.session import (
        inspect,
        inspect_perf_data,
        inspect_sections,
        is_perf_data,
    )

    report: NamedTuple
    with Output(options.output) as output:
        if is_perf_data(options.path):
            from purebpf.tools.inspect.render_files import perf_data_lines

            report = recording = inspect_perf_data(options.path)
            text = perf_data_lines(recording)
        elif options.sections:
            from purebpf.tools.inspect.render_files import elf_lines

            report = elf = inspect_sections(options.path)
            text = elf_lines(elf)
        else:
            report = described = inspect(options)
            text = lines(described)
        folded = (fold(line, output.columns) for line in text)
        output.write([document(report)] if options.format == "json" else folded)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
