"""`purebpf dump`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.errors import PurebpfError
from purebpf.tools.dump.options import DumpOptions, build_parser, parse

if TYPE_CHECKING:
    from purebpf.tools.dump.model import ProcessDump

__all__ = ["build_parser", "main"]

NAME = "purebpf dump"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: DumpOptions) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli.output import Output
    from purebpf.measure.named_targets import present_processes
    from purebpf.results.model.width import fold
    from purebpf.tools.dump.render import document, lines

    with Output(options.output) as output:
        is_next = False
        for dumped in _dump_each(present_processes(options, tree=options.tree), options):
            if options.format == "json":
                output.write([document(dumped)])
                continue
            if is_next:
                output.write(["\n"])
            is_next = True
            output.write(
                fold(line, output.columns) for line in lines(dumped, verbose=options.verbose)
            )
    return 0


def _dump_each(pids: Sequence[int], options: DumpOptions) -> Iterator[ProcessDump]:
    """Yield the dump of each process; of several, some may end or be refused, with a note.

    Raises:
        PurebpfError: the last one's, if there is no dump of any.
    """
    from purebpf.tools.dump.session import dump

    refused: PurebpfError | None = None
    has_one = False
    for pid in pids:
        try:
            dumped = dump(
                pid,
                native=options.native,
                kernel=not options.user_stacks_only,
                tasks=options.async_tasks,
            )
        except PurebpfError as error:
            if len(pids) == 1:
                raise
            command.note(f"PID {pid} is left out: {error}")
            refused = error
            continue
        has_one = True
        if options.tids:
            threads = tuple(thread for thread in dumped.threads if thread.tid in options.tids)
            dumped = dumped._replace(threads=threads)
        yield dumped
    if refused is not None and not has_one:
        raise refused


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
