"""The command line of `purebpf script`, with the options of bpftrace."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import arguments, parser
from purebpf.tools.script.request import Options

__all__ = ["build_parser", "parse"]

_DESCRIPTION = """Run a script in bpftrace's language: probes, predicates, maps, histograms,
stacks. The script is compiled here, without LLVM, in about a millisecond.
A part of the language that is not supported yet is refused by name, with
its line, before anything is loaded.
"""

_EXAMPLES = """examples:
  purebpf script -e 'tracepoint:syscalls:sys_enter_openat { @[comm]++; }'
  purebpf script -e 'profile:hz:99 { @[kstack] = count(); }'
  purebpf script latency.bt 10                   a file; $1 is 10
  purebpf script -c 'ls -l' -e 'uprobe:libc.so.6:malloc { @ = hist(arg0); }'
"""


def parse(argv: Sequence[str]) -> Options:
    """The options, or the end of the process with a usage message (status 2)."""
    made = build_parser()
    parsed = made.parse_args(argv)
    words = list(parsed.words)
    path = words.pop(0) if parsed.lists and words else ""
    if parsed.text is None and not (parsed.info or parsed.lists):
        if not words:
            made.error("a script is missing: FILE, or -e TEXT")
        path = words.pop(0)
    return Options(
        text=parsed.text,
        path=path,
        parameters=tuple(words),
        command=parsed.child,
        pid=parsed.pid,
        output=parsed.output,
        is_json=parsed.format == "json",
        is_quiet=parsed.quiet,
        is_verbose=parsed.verbose,
        is_dry=parsed.dry,
        is_unsafe=parsed.unsafe,
        buffering=parsed.buffering,
        shows_info=parsed.info,
        lists=parsed.lists,
        omits_warnings=parsed.no_warnings,
    )


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    made = parser.new("purebpf script", _DESCRIPTION, _EXAMPLES, usage="FILE [parameter ...]")
    made.add_argument("words", metavar="FILE", nargs="*", help="the script, - for standard input")
    made.add_argument("-e", dest="text", metavar="TEXT", help="the script itself")
    made.add_argument(
        "-c", "--cmd", dest="child", metavar="COMMAND", default="",
        help="run a command while the script is attached, and end with it; cpid is its process",
    )  # fmt: skip
    made.add_argument(
        "-p", "--pid", type=arguments.positive_int, default=0, metavar="PID",
        help="trace one process, and end with it",
    )  # fmt: skip
    made.add_argument(
        "-f", "--format", choices=("text", "json"), default="text", help="text, or lines of JSON"
    )
    made.add_argument("-o", "--output", metavar="FILE", help="write the output to a file")
    made.add_argument(
        "-B", dest="buffering", choices=("line", "full", "none"), default="line",
        help="how the output is buffered (default: line)",
    )  # fmt: skip
    made.add_argument("-q", "--quiet", action="store_true", help="print the script's output only")
    made.add_argument("-v", "--verbose", action="store_true", help="print the size of each program")
    made.add_argument(
        "--dry-run", dest="dry", action="store_true", help="load and attach, but do not run"
    )
    made.add_argument(
        "--unsafe", action="store_true", help="allow functions that change the system"
    )
    made.add_argument(
        "-l", dest="lists", action="store_true",
        help="list the attach points that fit the pattern FILE, such as 'tracepoint:sched:*'",
    )  # fmt: skip
    made.add_argument(
        "--info", action="store_true", help="print the features that scripts can use here"
    )
    made.add_argument("--no-warnings", action="store_true", help="print no warnings")
    return made
