"""The command line of `purebpf offcpu`."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Sequence

from purebpf.cli import parser, time_options
from purebpf.cli.arguments import milliseconds
from purebpf.cli.destination import ResultOptions, destinations
from purebpf.tools.offcpu.request import STATES, OffCpuOptions

__all__ = ["ONE_BY_ONE", "build_parser", "parse"]

ONE_BY_ONE = frozenset({"json", "chrome", "perf.data"})
"""Formats that date each long wait; in the others equal ones are added up."""

_BITS = {1: "S", 2: "D", 4: "T", 8: "t", 64: "P", 0x402: "I"}

_DESCRIPTION = """\
Show where threads block: how long each was off the CPU, by stack, added up in
the kernel. Long waits are recorded one by one; waits in flight when the run
ends are shown too, with `~`."""

_EPILOG = """\
examples:
  purebpf offcpu 5                the whole machine, for 5 seconds
  purebpf offcpu -p 185 5         process 185; --tree: and children
  purebpf offcpu --waker -p 185 5   with the wakers
  purebpf offcpu --state D 5      uninterruptible waits: disk
  purebpf offcpu --preempt 5      waiting for a CPU as well
  purebpf offcpu --state gil 5    Python threads that wait for the GIL
  purebpf offcpu -m 1000 5        waits of a millisecond or more
  purebpf offcpu -f 5 > out       folded stacks, for flame graphs
  purebpf offcpu --format json --thresh 0 -o out.json 5
  purebpf offcpu --thresh 0 -o a.trace.json 5   for Perfetto
  purebpf offcpu -o waits.html -o waits.data 5   and for perf report
  purebpf offcpu --serve          a live flame graph in a browser
  purebpf offcpu -- make test     a command and its children

States: S sleeping, D uninterruptible, I idle, T stopped, t traced, P parked,
R preempted; gil: of S, waiting for Python's GIL (docs/python.md).

The loss line at the end, on standard error, says what the numbers do not
include.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root. Linux 5.10 or later, with BTF.
docs/offcpu.md"""


def parse(argv: Sequence[str]) -> tuple[OffCpuOptions, ResultOptions]:
    """Return the waits to trace and the output options; exit with status 2 on a usage error."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {"-p": "pids", "-t": "tids"})
    if parsed.max_us is not None and parsed.max_us < parsed.min_us:
        command_parser.error("-M is below -m: no time can match")
    parsed.python_lines = parsed.lines
    parsed.to = destinations(command_parser, parsed.formats, parsed.outputs)
    parsed.one_by_one = any(destination.format in ONE_BY_ONE for destination in parsed.to)
    return parser.pick(OffCpuOptions, parsed), parser.pick(ResultOptions, parsed, is_partial=True)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf offcpu", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "trace")
    time_options.add_whose(
        command_parser.add_argument_group("targets"), cpus="threads that leave these CPUs"
    )
    _add_times(command_parser.add_argument_group("times"))
    output = command_parser.add_argument_group("output")
    parser.add_stack_kinds(output)
    time_options.add_output(output, details="-d and -s")
    parser.take_defaults(command_parser, OffCpuOptions)
    return command_parser


def _add_times(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        *("--state",), dest="states", metavar="S,D,..", type=_states,
        help="only these states; or bcc's number (1: S, 2: D; default: all but R)",
    )  # fmt: skip
    group.add_argument(
        "--preempt", action="store_true", help="also R: preempted, or waiting for the first run"
    )
    group.add_argument(
        *("-m", "--min-block-time"), dest="min_us", metavar="USEC", type=_microseconds,
        help="minimum duration",
    )  # fmt: skip
    group.add_argument(
        *("-M", "--max-block-time"), dest="max_us", metavar="USEC", type=_microseconds,
        help="maximum duration",
    )  # fmt: skip
    group.add_argument(
        *("--thresh",), dest="threshold_ms", metavar="TIME", type=milliseconds,
        help=(
            "minimum duration; longer waits are also recorded one by one (default %(default)g; "
            "0: all)"
        ),
    )  # fmt: skip
    group.add_argument(
        "--waker", action="store_true", help="show the waker, and the run-queue delay"
    )
    group.add_argument("--inflight", action="store_true", help="only waits in flight at the end")


def _states(text: str) -> str:
    if text.isascii() and text.isdigit():
        bits = int(text)
        letters = (
            "R"
            if not bits
            else "".join(letter for bit, letter in _BITS.items() if bits & bit == bit)
        )
    else:
        letters = text.replace("gil", "G").replace(",", "")
    wrong = letters.strip("R" + STATES)
    if wrong or not letters:
        raise ArgumentTypeError(f"unknown state {text!r}; known: S, D, I, T, t, P, R and gil")
    return "".join(dict.fromkeys(letters))


def _microseconds(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) >= 1 << 53:
        raise ArgumentTypeError(f"{text!r} is not a whole number of microseconds")
    return int(text)
