"""The command line of `purebpf script`, with the options of bpftrace."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import cast

from purebpf.cli import parser
from purebpf.tools.script.imitation import BpftraceParser
from purebpf.tools.script.request import ScriptOptions

__all__ = ["build_parser", "parse"]

_MOST_PID = 1 << 22
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
  purebpf script --container web FILE            tasks of a container only
"""


def parse(argv: Sequence[str], *, as_bpftrace: bool = False) -> ScriptOptions:
    """The options, or the end of the process with a usage message (status 2)."""
    command_parser = build_parser(as_bpftrace=as_bpftrace)
    before, options, after = _split(argv)
    parsed = command_parser.parse_intermixed_args(before)
    words = [*parsed.words, *after]
    path = ""
    runs = not (parsed.info or parsed.lists or parsed.version)
    if words and parsed.text is None and not parsed.version:
        path = words.pop(0)
    if parsed.text is None and runs and not path:
        command_parser.error("a script is missing: FILE, or -e TEXT")
    return ScriptOptions(
        text=parsed.text,
        path=path,
        parameters=tuple(words),
        options=options,
        command=parsed.child,
        pid=parsed.pid,
        uid=getattr(parsed, "uid", None),
        cgroup=_cgroup(parsed),
        duration_s=getattr(parsed, "duration", None),
        output=parsed.output,
        is_json=parsed.format == "json",
        is_quiet=parsed.quiet,
        is_verbose=parsed.verbose,
        is_dry=parsed.dry,
        is_unsafe=parsed.unsafe,
        buffering=parsed.buffering,
        shows_info=parsed.info,
        shows_version=parsed.version,
        lists=parsed.lists,
        omits_warnings=parsed.no_warnings,
        probe_filter=parsed.probe_filter,
        traceable_functions=parsed.traceable_functions,
        is_bpftrace=as_bpftrace,
        mode=parsed.mode,
        build=parsed.build,
    )


def _split(argv: Sequence[str]) -> tuple[list[str], dict[str, str | None], list[str]]:
    """Return our own arguments, and the options and the words of the script behind `--`."""
    words = list(argv)
    separator = words.index("--") if "--" in words else len(words)
    options: dict[str, str | None] = {}
    after = []
    for word in words[separator + 1 :]:
        if word.startswith("--") and word != "--":
            name, equals, value = word[2:].partition("=")
            options[name] = value if equals else None
        else:
            after.append(word)
    return words[:separator], options, after


def _process(text: str) -> int:
    """A process id, with bpftrace's words for wrong ones."""
    digits = re.match(r"\d*", text)
    if not digits or not digits[0]:
        raise argparse.ArgumentTypeError(f"Failed to parse pid: invalid integer: {text}")
    if digits[0] != text:
        raise argparse.ArgumentTypeError(f"Failed to parse pid: invalid trailing bytes: {text}")
    if not 1 <= int(text) <= _MOST_PID:
        raise argparse.ArgumentTypeError(f"Pid out of range: {text}")
    return int(text)


def _cgroup(parsed: argparse.Namespace) -> str | None:
    """Return the folder of the chosen cgroup, or of the container by its name.

    Raises:
        NoSuchTargetError: there is no such container.
    """
    if (name := getattr(parsed, "container", None)) is None:
        return cast("str | None", getattr(parsed, "cgroup", None))
    from purebpf.measure.named_targets import container_cgroup

    return container_cgroup(name)


def _format(text: str) -> str:
    if text not in ("text", "json"):
        message = f'Invalid output format "{text}"\nValid formats: text, json'
        raise argparse.ArgumentTypeError(message)
    return text


def _pattern(text: str) -> str:
    """A regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        message = f"Invalid --probe-filter regex {text!r}: {error}"
        raise argparse.ArgumentTypeError(message) from None
    return text


def _existing_file(path: str) -> str:
    """A file that can be opened; "" for none."""
    if not path:
        return path
    try:
        with open(path, encoding="utf-8"):
            return path
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path}: {error.strerror}") from None


def build_parser(*, as_bpftrace: bool = False) -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = (
        BpftraceParser(prog="bpftrace", allow_abbrev=False)
        if as_bpftrace
        else parser.new("purebpf script", _DESCRIPTION, _EXAMPLES, usage="FILE [parameter ...]")
    )
    command_parser.add_argument(
        "words", metavar="FILE", nargs="*", help="the script, - for standard input"
    )
    command_parser.add_argument("-e", dest="text", metavar="TEXT", help="the script itself")
    command_parser.add_argument(
        "-c", "--cmd", dest="child", metavar="COMMAND", default="",
        help="run a command while the script is attached, and end with it; cpid is its process",
    )  # fmt: skip
    command_parser.add_argument(
        "-p", "--pid", type=_process, metavar="PID",
        help="trace one process, and end with it",
    )  # fmt: skip
    command_parser.add_argument(
        "-f", "--format", type=_format, default="text", metavar="{text,json}",
        help="text, or lines of JSON",
    )  # fmt: skip
    if not as_bpftrace:
        parser.add_scope(command_parser, "events whose task runs as this user, only")
        parser.add_duration_option(command_parser, "end after 5s, 500ms, 2m (default: at Ctrl-C)")
        command_parser.add_argument(
            *("--json",), dest="format", action="store_const", const="json",
            help="same as --format json",
        )  # fmt: skip
    command_parser.add_argument("-o", "--output", metavar="FILE", help="write the output to a file")
    command_parser.add_argument(
        "-B", dest="buffering", choices=("line", "full", "none"),
        help="how the output is buffered (default: line)",
    )  # fmt: skip
    command_parser.add_argument(
        "-q", "--quiet", action="store_true", help="print the script's output only"
    )
    command_parser.add_argument(
        "-v", "--verbose", action="store_true", help="print the size of each program"
    )
    command_parser.add_argument(
        "--dry-run", dest="dry", action="store_true", help="load and attach, but do not run"
    )
    command_parser.add_argument(
        "--unsafe", action="store_true", help="allow functions that change the system"
    )
    command_parser.add_argument(
        "-l", "--list", dest="lists", action="store_true",
        help="list the attach points that fit the pattern FILE, such as 'tracepoint:sched:*', or "
        "of a script",
    )  # fmt: skip
    command_parser.add_argument(
        "--info", action="store_true", help="print the features that scripts can use here"
    )
    command_parser.add_argument(
        "--probe-filter", type=_pattern, metavar="REGEX",
        help="attach only the probes whose names match",
    )  # fmt: skip
    command_parser.add_argument(
        "--traceable-functions", metavar="FILE", type=_existing_file,
        help="a list of kernel functions that can be traced, in the place of tracefs's "
        "available_filter_functions",
    )  # fmt: skip
    command_parser.add_argument(
        "--usdt-file-activation", action="store_true",
        help="accepted for bpftrace's sake: the kernel always counts the tracers of a static probe",
    )  # fmt: skip
    if as_bpftrace:
        command_parser.add_argument("--mode", choices=("bench",))
    command_parser.add_argument(
        "--bench", dest="mode", action="store_const", const="bench",
        help="run the bench blocks, and print the mean time of each",
    )  # fmt: skip
    command_parser.add_argument(
        "--build", metavar="ARCHIVE",
        help="write one file that runs the script where only Python 3.11 is, and do not run it",
    )  # fmt: skip
    command_parser.add_argument("-V", "--version", action="store_true", help="print the version")
    command_parser.add_argument(
        *("-I", "--include"), metavar="PATH", action="append",
        help="ignored, as #include is: BTF has the types",
    )  # fmt: skip
    command_parser.add_argument("--no-warnings", action="store_true", help="print no warnings")
    parser.take_defaults(command_parser, ScriptOptions)
    return command_parser
