"""The command line of `purebpf inspect`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import output
from purebpf.tools.inspect.request import InspectOptions

__all__ = ["build_parser", "parse"]

_DESCRIPTION = """Show the programs, maps, globals and relocations of a BPF object file, and what
a kernel would make of each CO-RE relocation; or the header, events and features
of a perf.data file. Loads nothing, and needs no root.
"""

_EXAMPLES = """examples:
  purebpf inspect tool.bpf.o                     on this kernel
  purebpf inspect --btf 5.4.0-90.btf tool.bpf.o  on another (BTFHub)
  purebpf inspect --sections tool.bpf.o          ELF sections and relocations
  purebpf inspect perf.data                      what perf recorded, and where
  purebpf inspect --disassemble tool.bpf.o       the code, below its lines of C
  purebpf inspect --json tool.bpf.o              for a program to read
  purebpf inspect --stubs tool.bpf.o -o tool.py  typed, for an editor
  purebpf inspect --btf-for 5.4.0-90.btf tool.bpf.o -o tool.btf
"""


def parse(argv: Sequence[str]) -> InspectOptions:
    """The options, or the end of the process with a usage message (status 2)."""
    command_parser = build_parser()
    given = vars(command_parser.parse_args(argv))
    options = InspectOptions(**given | {"programs": tuple(given["programs"])})
    if options.sections and (options.stubs or options.disassemble):
        other = "--stubs" if options.stubs else "--disassemble"
        command_parser.error(f"--sections and {other} exclude each other")
    if options.programs and not options.disassemble:
        command_parser.error("PROGRAM goes with --disassemble")
    if options.btf_for is not None and (options.sections or options.output is None):
        command_parser.error(
            "--btf-for writes a file: it goes with -o FILE, and not with --sections"
        )
    return options


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new(
        "purebpf inspect", _DESCRIPTION, _EXAMPLES, usage="FILE [PROGRAM ...]"
    )
    command_parser.add_argument(
        "path", metavar="FILE", help="an object file of clang or bpftool, or a perf.data file"
    )
    command_parser.add_argument(
        "programs",
        metavar="PROGRAM",
        nargs="*",
        help="with --disassemble: the programs or functions",
    )
    command_parser.add_argument(
        "--btf",
        metavar="FILE",
        help="the types of another kernel: BTF alone, or an ELF file that contains it",
    )
    form = command_parser.add_mutually_exclusive_group()
    parser.add_format(form)
    form.add_argument(
        "--stubs",
        action="store_true",
        help="print a Python module with a typed load() of this object: maps, globals and records",
    )
    form.add_argument(
        "--disassemble",
        action="store_true",
        help="show the code of the programs, and of the functions that they call, below its "
        "lines of C",
    )
    form.add_argument(
        "--btf-for",
        metavar="KERNEL",
        help="write the types of this kernel that the object needs, as BTF, for hosts without; "
        "KERNEL as for --btf; with -o",
    )
    command_parser.add_argument(
        "--sections",
        action="store_true",
        help="show header, sections, relocations and notes of any ELF file",
    )
    command_parser.add_argument(
        *("-o", "--output"), metavar="FILE", type=output, help="write to FILE instead of the screen"
    )
    parser.take_defaults(command_parser, InspectOptions)
    return command_parser
