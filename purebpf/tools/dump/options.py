"""The command line of `purebpf dump`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import id_list, output
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
  purebpf dump --container web    every process of a container
  purebpf dump --native 185   with the frames of the runtime itself
  purebpf dump --async 185    with the tasks of asyncio
  purebpf dump --json 185     for a program

exit status: 0; 1 an error; 2 a wrong option.

Needs CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE, or root, x86_64 or arm64, and
Linux 5.15 or later. Python frames: CPython 3.8 to 3.15. Java frames: HotSpot 11
to 25, and JavaScript frames: node 18 and 20 to 26, on x86_64. docs/dump.md"""


class DumpOptions(NamedTuple):
    """The processes to dump, and the parts to print.

    Attributes:
        pids, tids, comm, tree, uid, cgroup: whom to dump, as in all commands; cpus: empty.
        native: also the frames of the interpreter.
        async_tasks: also the tasks of asyncio.
        user_stacks_only: no kernel frames.
        format: "text" or None, or "json".
        output: a file for the result; None is standard output.
        verbose: each thread apart, with the frames in the kernel.
    """

    pids: tuple[int, ...] = ()
    tids: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    comm: str | None = None
    tree: bool = False
    uid: int | None = None
    cgroup: str | None = None
    native: bool = False
    async_tasks: bool = False
    user_stacks_only: bool = False
    format: str | None = None
    output: str | None = None
    verbose: bool = False


def parse(argv: Sequence[str]) -> DumpOptions:
    """The options, or the end of the process with a usage message (status 2)."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {}, awaits_name=False)
    if parsed.command:
        command_parser.error("a command has no stacks before it runs: purebpf dump PID")
    given = parsed.process or ()
    named = (parsed.pids, parsed.tids, parsed.comm)
    if given and any(named):
        command_parser.error("PID excludes -p, -t and --comm")
    if not given and not any((*named, parsed.cgroup, parsed.uid is not None)):
        command_parser.error("a process is needed: purebpf dump PID")
    parsed.pids = parsed.pids or given
    return parser.pick(DumpOptions, parsed, is_partial=True)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf dump", _DESCRIPTION, _EPILOG, usage="PID")
    command_parser.add_argument(
        "process", metavar="PID", nargs="?", type=id_list, help="the process, or several: PID,PID"
    )
    parser.add_targets(command_parser.add_argument_group("targets"), cpus=None)
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
    parser.add_format(command_parser)
    command_parser.add_argument(
        *("-o", "--output"), metavar="FILE", type=output, help="write to FILE instead of the screen"
    )
    parser.take_defaults(command_parser, DumpOptions)
    return command_parser
