"""The command line of `purebpf mem`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import positive_int
from purebpf.cli.destination import (
    ResultOptions,
    add_destinations,
    add_folded,
    add_top,
    destinations,
)
from purebpf.tools.mem.request import COST_PERCENT, OF_MALLOC, SHOWN, MemOptions

__all__ = ["build_parser", "parse"]

_DESCRIPTION = """\
Show by stack what takes memory: what malloc gives and nothing frees, how mmap
and brk grow address spaces, page faults. Sizes are added up in the kernel."""

_EPILOG = """\
examples:
  purebpf mem -p 185 10         what process 185 allocates and keeps for 10 s
  purebpf mem -- ./a.out        a command and its children: what leaks
  purebpf mem --show allocated -p 185 10    all of it, freed or not
  purebpf mem --show faults 5   page faults of the whole machine
  purebpf mem --no-malloc -p 185 60   only growth and page faults: cheap
  purebpf mem --library libjemalloc.so.2 -p 185 10
  purebpf mem -o leaks.html -p 185 60   a flame graph; docs/formats.md

Each call of malloc and free costs the traced process some microseconds more:
mem says how much, and stops tracing malloc at a limit (--cost). With --,
--tree, -G and --container that holds for every process of the machine that
uses the same library; with -p for that process alone.

The loss line at the end, on standard error, says what the numbers do not
include.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON; for malloc CAP_SYS_ADMIN on some kernels; or
root. Linux 5.15 or later with BTF, x86-64. docs/mem.md"""


def parse(argv: Sequence[str]) -> tuple[MemOptions, ResultOptions]:
    """Return the memory to trace and the output options; exit with status 2 on a usage error."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {"-p": "pids", "-t": "tids"})
    parsed.python_lines = parsed.lines
    parsed.libraries = tuple(parsed.libraries)
    if parsed.libraries and not parsed.malloc:
        command_parser.error("--library and --no-malloc exclude each other")
    parsed.to = destinations(command_parser, parsed.formats, parsed.outputs)
    options = parser.pick(MemOptions, parsed)
    if options.show in OF_MALLOC and not options.traces_malloc:
        command_parser.error(
            f"--show {options.show} needs a target (-p, -t, --comm, -G, --container, --) or "
            "--library, and no --no-malloc"
        )
    return options, parser.pick(ResultOptions, parsed, is_partial=True)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf mem", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "trace")
    group = command_parser.add_argument_group("targets")
    parser.add_targets(group, cpus=None)
    _add_memory(command_parser.add_argument_group("memory"))
    _add_output(command_parser.add_argument_group("output"))
    parser.take_defaults(command_parser, MemOptions)
    command_parser.set_defaults(cost_percent=None)  # the target decides
    return command_parser


def _add_memory(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--show", choices=SHOWN, help="what to show: bytes, or page faults (default: unfreed; "
        "grown where malloc is not traced)",
    )  # fmt: skip
    group.add_argument(
        "--library", dest="libraries", metavar="FILE", action="append", default=[],
        help="also trace this allocator: a library or executable with malloc; repeatable",
    )  # fmt: skip
    group.add_argument(
        "--no-malloc", dest="malloc", action="store_false", help="do not trace allocators"
    )
    group.add_argument(
        "--cost", dest="cost_percent", metavar="PERCENT", type=_percent,
        help="stop tracing malloc once that has taken this share of a CPU from the target, over "
        f"the run (default {COST_PERCENT:g}; 0: no limit, the default for a command)",
    )  # fmt: skip
    group.add_argument(
        "--allocations", dest="allocation_storage_size", metavar="N", type=positive_int,
        help="maximum number of allocations that are not freed yet (default %(default)s)",
    )  # fmt: skip


def _percent(text: str) -> float:
    """Read a share of a CPU in percent, for argparse."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a share in percent")
    return number


def _add_output(group: argparse._ArgumentGroup) -> None:
    add_folded(group)
    add_destinations(group)
    add_top(group)
    parser.add_call_graph(group)
    parser.add_python(group)
    parser.add_storage(group, "(process, stack, kind)")
    parser.add_serve(group)
    parser.add_names(group)
    parser.add_strict(group)
