"""The command line of `purebpf profile`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import positive_int
from purebpf.cli.destination import (
    ResultOptions,
    add_answer,
    add_destinations,
    add_folded,
    destinations,
    says_when,
)
from purebpf.tools.profile.request import DEFAULT_FREQUENCY, ProfileOptions

__all__ = ["build_parser", "parse"]

_DESCRIPTION = """\
Show where the CPUs spend their time: sample at regular intervals what runs on
each of them, count equal stacks in the kernel, and print the stacks with their
counts, the hottest last."""

_EPILOG = """\
examples:
  purebpf profile 5             the whole machine, for 5 seconds
  purebpf profile               until Ctrl-C, which prints the result
  purebpf profile -F 99 -p 185  process 185, at 99 Hertz
  purebpf profile -L 2040,2041  two threads
  purebpf profile -U 5          only user stacks (-K: only kernel)
  purebpf profile -f 5 > out    folded stacks, for flame graphs
  purebpf profile -o out.html 5   a flame graph; docs/formats.md
  purebpf profile -o out.json.gz -o out.pb.gz 5
  purebpf profile --serve       a live flame graph in a browser
  purebpf profile -- make test  a command and its children

The loss line at the end, on standard error, says what the numbers do not
include: samples expected and seen, stacks that were dropped or truncated,
frames without a name.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root. Linux 5.10 or later. docs/profile.md,
docs/stacks.md"""


def parse(argv: Sequence[str]) -> tuple[ProfileOptions, ResultOptions]:
    """Return the target to sample and the output options; exit with status 2 on a usage error."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {"-p": "pids", "-L": "tids", "-C": "cpus"})
    parsed.user_stacks = not parsed.kernel_stacks_only
    parsed.kernel_stacks = not parsed.user_stacks_only
    parsed.python_lines = parsed.lines
    if parsed.program is not None and parsed.gil:
        command_parser.error("--program and --gil exclude each other")
    parsed.to = destinations(command_parser, parsed.formats, parsed.outputs)
    parsed.timeline = says_when(parsed.to) or parsed.serve is not None
    return parser.pick(ProfileOptions, parsed, is_partial=True), parser.pick(
        ResultOptions, parsed, is_partial=True
    )


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf profile", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "sample")
    _add_targets(command_parser.add_argument_group("what to sample"))
    _add_sampling(command_parser.add_argument_group("how to sample"))
    _add_output(command_parser.add_argument_group("output"))
    parser.take_defaults(command_parser, ProfileOptions)
    return command_parser


def _add_targets(group: argparse._ArgumentGroup) -> None:
    parser.add_targets(group, thread=("-L",))
    group.add_argument("-I", "--include-idle", action="store_true", help="also count the idle task")
    group.add_argument(
        *("--cgroupmap",),
        dest="cgroup_map",
        metavar="PATH",
        help="only cgroup IDs in this pinned BPF map",
    )
    group.add_argument(
        *("--mntnsmap",), dest="mount_namespace_map", metavar="PATH",
        help="only mount namespaces in this pinned BPF map",
    )  # fmt: skip


def _add_sampling(group: argparse._ArgumentGroup) -> None:
    rate = group.add_mutually_exclusive_group()
    parser.add_frequency(rate, f"samples a second on each CPU (default {DEFAULT_FREQUENCY})")
    rate.add_argument(
        *("-c", "--period"), dest="period", metavar="N", type=positive_int,
        help="sample every N events: CPU cycles, or nanoseconds of cpu-clock without a PMU",
    )  # fmt: skip
    rate.add_argument("--count", dest="period", type=positive_int, help=argparse.SUPPRESS)
    parser.add_stack_kinds(group)
    parser.add_call_graph(group)
    parser.add_python(group)
    parser.add_async(group)
    parser.add_program(group)
    group.add_argument(
        "--gil", action="store_true",
        help="only Python threads that hold the GIL",
    )  # fmt: skip
    parser.add_storage(group, "(process, stacks)")


def _add_output(group: argparse._ArgumentGroup) -> None:
    add_folded(group)
    add_destinations(group)
    add_answer(group, other="-d and -A")
    parser.add_delimited(group)
    group.add_argument(
        *("-a", "--annotations"), action="store_true", help="append _[k] to kernel frames (folded)"
    )
    group.add_argument(
        *("-A", "--address"),
        dest="addresses",
        action="store_true",
        help="raw addresses before names (text)",
    )
    parser.add_serve(group)
    parser.add_names(group)
    parser.add_strict(group)
