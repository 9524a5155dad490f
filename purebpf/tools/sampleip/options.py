"""The command line of `purebpf sampleip`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import positive_int
from purebpf.tools.sampleip.request import SampleIpOptions, Symbol

__all__ = ["build_parser", "parse"]

_DESCRIPTION = """\
Sample the instruction pointer, and show or count the samples in an address
range, a function or a module. The kernel selects the samples."""

_EPILOG = """\
examples:
  purebpf sampleip --symbol vfs_read 5       what runs vfs_read
  purebpf sampleip --symbol vfs_read+0x1c 5  at one instruction
  purebpf sampleip --count 5                 hot addresses
  purebpf sampleip --module libc.so.6 -p 185 --count 5
  purebpf sampleip --range 0xffffffff81214b90-0xffffffff81214cd0 --hex

The loss line at the end, on standard error, says what is not shown.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root. docs/sampleip.md"""

_RANGE = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)-(0[xX][0-9a-fA-F]+|\d+)")
_SYMBOL = re.compile(r"(.+?)(?:\+(0[xX][0-9a-fA-F]+|\d+))?")
_TOP = 1 << 64


def parse(argv: Sequence[str]) -> SampleIpOptions:
    """Options from the command line; exits with status 2 and a usage line when they are wrong."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {"-p": "pids", "-t": "tids", "-G": "cgroup"})
    if parsed.hex and parsed.counting:
        command_parser.error("--hex shows samples, but --count shows only counts")
    for name in ("ranges", "symbols", "modules"):
        setattr(parsed, name, tuple(getattr(parsed, name)))
    parsed.ring_pages = 1 << (parsed.ring_pages - 1).bit_length()
    return SampleIpOptions(**vars(parsed))


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf sampleip", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "sample")
    group = command_parser.add_argument_group("addresses (all of these together; default: all)")
    group.add_argument(
        *("--range",), dest="ranges", metavar="START-END", type=_range, action="append", default=[],
        help="from START to END, END excluded",
    )  # fmt: skip
    group.add_argument(
        *("--symbol",), dest="symbols", metavar="NAME[+OFF]", type=_symbol, action="append",
        default=[], help="a function of the kernel or, with -p, of the process; or an offset in it",
    )  # fmt: skip
    group.add_argument(
        *("--module",), dest="modules", metavar="M", action="append", default=[],
        help="a kernel module, `kernel`, or, with -p, a file that the process has mapped",
    )  # fmt: skip
    how = command_parser.add_argument_group("rate")
    parser.add_program(how)
    rate = how.add_mutually_exclusive_group()
    parser.add_frequency(rate, "samples a second (default %(default)s)")
    rate.add_argument(
        *("-c", "--period"),
        metavar="PERIOD",
        type=positive_int,
        help="take a sample every N events",
    )
    parser.add_targets(command_parser.add_argument_group("targets"))
    _add_output(command_parser.add_argument_group("output"))
    parser.take_defaults(command_parser, SampleIpOptions)
    return command_parser


def _add_output(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        *("--count",), dest="counting", action="store_true",
        help="count in the kernel instead of printing each sample",
    )  # fmt: skip
    group.add_argument("--hex", action="store_true", help="the bytes, as perf script prints them")
    group.add_argument(
        *("--map-entries",), metavar="N", type=positive_int,
        help="maximum number of addresses for --count (default %(default)s)",
    )  # fmt: skip
    group.add_argument(
        *("-m", "--mmap-pages"), dest="ring_pages", metavar="PAGES", type=positive_int,
        help="pages of each CPU's ring (default %(default)s)",
    )  # fmt: skip
    parser.add_output(group)


def _range(text: str) -> tuple[int, int]:
    bounds = _RANGE.fullmatch(text)
    if bounds is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range such as 0x1000-0x2000")
    start, end = _number(bounds[1]), _number(bounds[2])
    if end > _TOP:
        raise argparse.ArgumentTypeError(f"{text!r} does not fit in 64 bits")
    if start >= end:
        raise argparse.ArgumentTypeError(f"{text!r}: the start must be below the end")
    return start, end


def _symbol(text: str) -> Symbol:
    symbol_match = _SYMBOL.fullmatch(text)
    if symbol_match is None:
        raise argparse.ArgumentTypeError("a function name is required")
    return Symbol(symbol_match[1], None if symbol_match[2] is None else _number(symbol_match[2]))


def _number(text: str) -> int:
    return int(text, 16 if text[:2] in ("0x", "0X") else 10)
