"""The command line of `purebpf types`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import positive_int
from purebpf.tools.types.request import TypesOptions
from purebpf.tuples import NamedTuple

__all__ = ["View", "build_parser", "parse"]

_DESCRIPTION = """\
Show the structs and members that sampled code touches. The instruction before
each sampled address is decoded, and the type behind its register comes from
the program's DWARF, in the kernel from its BTF. The rest is counted by its
reason."""

_EPILOG = """\
examples:
  purebpf types -p 4242 10                structs and members of a process
  purebpf types -- ./program              as long as a program runs
  purebpf types --struct conn -p 4242 5   one layout, with shares
  purebpf types --by function -p 4242 5   which functions touch them
  purebpf types -i perf.data              samples that were recorded before

Needs programs with DWARF (-g), x86-64, and the extra purebpf[types].

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root. docs/types.md"""


class View(NamedTuple):
    """The display of the result. `top`: structs of a text; `struct` "": a table of all; `path`:
    of a perf.data file with the samples, and its `event`; `output` None: standard output;
    `debuginfod`: download missing debug files.
    """

    format: str = "text"
    by: str = "member"
    top: int = 40
    struct: str = ""
    path: str = ""
    event: str | None = None
    output: str | None = None
    debuginfod: bool = False
    strict: bool = False
    verbose: bool = False


def parse(argv: Sequence[str]) -> tuple[TypesOptions, View]:
    """Options from the command line; exits with status 2 and a usage line when they are wrong."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {"-p": "pids", "-t": "tids", "-G": "cgroup"})
    targets = (*parsed.pids, *parsed.tids, *parsed.cpus, *parsed.command)
    named = (parsed.cgroup, parsed.comm, parsed.uid, parsed.duration_s)
    if parsed.path and (targets or any(name is not None for name in named)):
        command_parser.error(
            "-i reads samples from a file: it excludes targets, a duration and a command"
        )
    if parsed.event and not parsed.path:
        command_parser.error("-e chooses an event of a file: add -i FILE")
    return parser.pick(TypesOptions, parsed, is_partial=True), parser.pick(
        View, parsed, is_partial=True
    )


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf types", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "sample")
    parser.add_frequency(
        command_parser.add_argument_group("rate"), "samples a second (default %(default)s)"
    )
    parser.add_targets(command_parser.add_argument_group("targets"))
    source = command_parser.add_argument_group("samples of a file")
    source.add_argument(
        *("-i", "--input"), dest="path", metavar="FILE",
        help="a perf.data file, of purebpf or perf; - for standard input",
    )  # fmt: skip
    source.add_argument(
        *("-e", "--event"), metavar="EVENT", help="its event (default: the first with samples)"
    )
    group = command_parser.add_argument_group("output")
    group.add_argument(
        "--by", choices=("member", "function"),
        help="rows below each struct (default %(default)s)",
    )  # fmt: skip
    group.add_argument(
        *("-n", "--top"), metavar="N", type=positive_int,
        help="the first N structs (text; default %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--struct", metavar="NAME",
        help="the layout of one struct, with the share of each member and cache line",
    )  # fmt: skip
    parser.add_format(group, ("text", "json", "csv"), "json: an object on each line")
    group.add_argument(
        *("--map-entries",), metavar="N", type=positive_int,
        help="maximum number of sampled addresses (default %(default)s)",
    )  # fmt: skip
    parser.add_debuginfod(group)
    parser.add_output(group)
    parser.take_defaults(command_parser, TypesOptions, View)
    return command_parser
