"""The command line of `purebpf dump`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import output, positive_int
from purebpf.tuples import NamedTuple

__all__ = ["DumpOptions", "build_parser", "parse"]

_DESCRIPTION = """\
Print the present stack of every thread of a process: native, Python, Java and
JavaScript frames, innermost first, the reason for its wait, and the holder of
the lock that it waits for. Threads with equal stacks are one. The process is
not stopped."""

_EPILOG = """\
examples:
  purebpf dump 185            what process 185 does now
  purebpf dump -v 185         each thread apart, with its frames in the kernel
  purebpf dump --native 185   with the frames of the runtime itself
  purebpf dump --async 185    with the tasks of asyncio
  purebpf dump --json 185     for a program

exit status: 0; 1 an error; 2 a wrong option.

Needs CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE, or root, x86_64 or arm64, and
Linux 5.15 or later. Python frames: CPython 3.8 to 3.15. Java frames: HotSpot 11
to 25, and JavaScript frames: node 18 and 20 to 26, on x86_64. docs/dump.md"""


class DumpOptions(NamedTuple):
    """The process to dump, and the parts to print.

    Attributes:
        pid: the process.
        native: also the frames of the interpreter.
        async_tasks: also the tasks of asyncio.
        user_stacks_only: no kernel frames.
        json: JSON instead of text.
        output: a file for the result; None is standard output.
        verbose: each thread apart, with the frames in the kernel.
    """

    pid: int
    native: bool = False
    async_tasks: bool = False
    user_stacks_only: bool = False
    json: bool = False
    output: str | None = None
    verbose: bool = False


def parse(argv: Sequence[str]) -> DumpOptions:
    """The options, or the end of the process with a usage message (status 2)."""
    command_parser = build_parser()
    values = vars(command_parser.parse_args(argv))
    given = values.pop("process")
    if (given is None) == (values["pid"] is None):
        command_parser.error("one process is needed: purebpf dump PID")
    return DumpOptions(**{**values, "pid": given if values["pid"] is None else values["pid"]})


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf dump", _DESCRIPTION, _EPILOG, usage="PID")
    command_parser.add_argument(
        "pid", metavar="PID", nargs="?", type=positive_int, help="the process"
    )
    command_parser.add_argument(
        *("-p", "--pid"), dest="process", metavar="PID", type=positive_int, help="the same as PID"
    )
    command_parser.add_argument(
        *("-v", "--verbose"),
        action="store_true",
        help="print each thread apart, with its frames in the kernel",
    )
    command_parser.add_argument(
        "--native", action="store_true", help="show the frames of the interpreter or JVM itself"
    )
    command_parser.add_argument(
        "--async",
        dest="async_tasks",
        action="store_true",
        help="show the tasks of asyncio: where each waits, and which tasks wait for it",
    )
    command_parser.add_argument(
        *("-U", "--user-stacks-only"), action="store_true", help="leave out the kernel's frames"
    )
    command_parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    command_parser.add_argument(
        *("-o", "--output"), metavar="FILE", type=output, help="write to FILE instead of the screen"
    )
    parser.take_defaults(command_parser, DumpOptions)
    return command_parser
