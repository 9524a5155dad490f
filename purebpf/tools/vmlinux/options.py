"""The command line of `purebpf vmlinux`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import output
from purebpf.tuples import NamedTuple

__all__ = ["VmlinuxOptions", "build_parser", "parse"]

_DESCRIPTION = """Write a vmlinux.h: the types of the running kernel, or of another one, and the
kernel functions (kfuncs) that BPF programs may call. Needs no root.
"""

_EXAMPLES = """examples:
  purebpf vmlinux -o vmlinux.h                     every type (135,000 lines)
  purebpf vmlinux --for tool.bpf.c -o vmlinux.h    what this source needs
  purebpf vmlinux --btf 5.15.btf --for tool.bpf.c  of another kernel (BTFHub)
"""


class VmlinuxOptions(NamedTuple):
    """The output of `purebpf vmlinux`.

    Attributes:
        sources: C files that will include it; empty: every type is written.
        btf: a file with the types of another kernel; None is the running one.
        output: a file for the result; None is standard output.
    """

    sources: tuple[str, ...] = ()
    btf: str | None = None
    output: str | None = None


def parse(argv: Sequence[str]) -> VmlinuxOptions:
    """The options, or the end of the process with a usage message (status 2)."""
    parsed = build_parser().parse_args(argv)
    return VmlinuxOptions(tuple(parsed.sources), parsed.btf, parsed.output)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf vmlinux", _DESCRIPTION, _EXAMPLES, usage="[--for SOURCE]")
    command_parser.add_argument(
        "--for",
        dest="sources",
        metavar="SOURCE",
        action="append",
        default=[],
        help="only what this C source needs, with the headers of its own; may be repeated",
    )
    command_parser.add_argument(
        "--btf",
        metavar="FILE",
        help="the types of another kernel: BTF alone, or an ELF file that contains it",
    )
    command_parser.add_argument(
        *("-o", "--output"), metavar="FILE", type=output, help="write to FILE instead of the screen"
    )
    parser.take_defaults(command_parser, VmlinuxOptions)
    return command_parser
