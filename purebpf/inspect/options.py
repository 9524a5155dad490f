"""The command line of `python -m purebpf.inspect`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import output
from purebpf.inspect.request import Options

__all__ = ["build_parser", "parse"]

_DESCRIPTION = """Show the programs, maps, globals and relocations of a BPF object file, and what
a kernel would make of each CO-RE relocation. Loads nothing, and needs no root.
"""

_EXAMPLES = """examples:
  purebpf inspect tool.bpf.o                     on this kernel
  purebpf inspect --btf 5.4.0-90.btf tool.bpf.o  on another (BTFHub)
  purebpf inspect --json tool.bpf.o              for a program to read
  purebpf inspect --stubs tool.bpf.o -o tool.py  typed, for an editor
"""


def parse(argv: Sequence[str]) -> Options:
    """The options, or the end of the process with a usage message (status 2)."""
    return Options(**vars(build_parser().parse_args(argv)))


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    made = parser.new("purebpf.inspect", _DESCRIPTION, _EXAMPLES, usage="OBJECT")
    made.add_argument("path", metavar="OBJECT", help="an object file of clang or bpftool")
    made.add_argument(
        "--btf",
        metavar="FILE",
        help="the types of another kernel: BTF alone, or an ELF file that contains it",
    )
    form = made.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON instead of text")
    form.add_argument(
        "--stubs",
        action="store_true",
        help="print a Python module with a typed load() of this object: maps, globals and records",
    )
    made.add_argument(
        *("-o", "--output"), metavar="FILE", type=output, help="write to FILE instead of the screen"
    )
    return made
