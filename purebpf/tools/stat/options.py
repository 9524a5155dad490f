"""The command line of `purebpf stat`."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Sequence

from purebpf.cli import event_command, parser
from purebpf.cli.arguments import positive_int, seconds
from purebpf.cli.event_command import EventView
from purebpf.cli.listing import add_list, find_events
from purebpf.tools.stat.request import Groups, StatOptions, parse_groups
from purebpf.tuples import NamedTuple

__all__ = ["Repeats", "build_parser", "parse"]

_DESCRIPTION = """\
Count events of a command, processes, threads, CPUs, a cgroup or the whole
machine: CPU time, context switches, page faults, tracepoints, hardware events.
Nothing is sampled: counts are exact, and cost next to nothing."""

_EPILOG = """\
examples:
  purebpf stat -- make           a command and its children
  purebpf stat -r 10 -- true     ten times: means and standard errors
  purebpf stat 5                 the whole machine, for 5 seconds
  purebpf stat -p 185 -i 1       process 185, every second
  purebpf stat -A 5              each CPU; --per-thread: each thread
  purebpf stat --for-each-cgroup 'system.slice/*' 5
  purebpf stat -b 42,43 5        while BPF programs 42 and 43 run, each
  purebpf stat --shared -p 185 -i 1   with counters that other sessions use, too
  purebpf stat -e page-faults,sched:sched_switch -- make
  purebpf stat -e '{cycles,instructions}:u' -- make    a group: counted together
  purebpf stat --format csv -I 100 -o counts.csv -p 185 60

Events are named as in `perf list`. `~` marks an estimate: the event shared a
hardware counter with others. n/c: it never had one. n/s: not supported here.

exit status: 0; 1 an error; 2 a wrong option; 3 something was not counted, with
--strict; that of the command, with --.

Other users' tasks and code of the kernel need CAP_PERFMON, or root.
docs/stat.md"""

_MILLI = 1000


class Repeats(NamedTuple):
    """The number of runs of the command."""

    runs: int = 1


def parse(argv: Sequence[str]) -> tuple[StatOptions, EventView, Repeats]:
    """Return the events to count and the output options; exit with status 2 on a usage error."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {"-p": "pids", "-t": "tids"}, awaits_name=False)
    if parsed.comm is not None:
        from purebpf.measure.named_targets import processes_named

        parsed.pids = processes_named(parsed.comm)
    parsed.groups = tuple(group for groups in parsed.groups for group in groups)
    for wrong, why in (
        (parsed.runs > 1 and not parsed.command, "-r needs a command behind --"),
        (parsed.runs > 1 and parsed.interval_s, "-r and -i exclude each other"),
        (
            parsed.by == "thread" and not (parsed.pids or parsed.tids or parsed.uid is not None),
            "--per-thread needs -p, -t, --comm or --uid",
        ),
        (
            parsed.uid is not None and (parsed.pids or parsed.tids or parsed.cgroup),
            "--uid excludes -p, -t, --comm, -G and --container",
        ),
        (
            parsed.uid is not None
            and (parsed.for_each_cgroup or parsed.bpf_programs or parsed.shared or parsed.command),
            "--uid excludes --for-each-cgroup, -b, --shared and a command",
        ),
        (
            parsed.for_each_cgroup and (parsed.pids or parsed.tids or parsed.cgroup),
            "--for-each-cgroup excludes -p, -t, --comm, -G and --container",
        ),
        (
            parsed.bpf_programs
            and (parsed.pids or parsed.tids or parsed.cgroup or parsed.for_each_cgroup),
            "-b excludes -p, -t, --comm, -G, --container and --for-each-cgroup",
        ),
        (parsed.bpf_programs and parsed.by, "-b excludes -A and --per-thread"),
        (
            parsed.shared
            and (parsed.tree or parsed.cgroup or parsed.for_each_cgroup or parsed.bpf_programs),
            "--shared excludes --tree, -G, --container, --for-each-cgroup and -b",
        ),
        (
            parsed.shared and parsed.by == "cpu" and (parsed.pids or parsed.tids),
            "--shared -A is of all tasks: it excludes -p, -t and --comm",
        ),
        (
            parsed.shared and parsed.cpus and (parsed.pids or parsed.tids),
            "--shared -C is of all tasks: it excludes -p, -t and --comm",
        ),
        (
            parsed.shared and parsed.command and not parsed.all_cpus,
            "--shared does not follow children: count all tasks while the command runs, with -a",
        ),
        (parsed.all_cpus and not parsed.command, "-a needs a command; without one it is the rule"),
    ):
        if wrong:
            command_parser.error(why)
    return (
        parser.pick(StatOptions, parsed),
        parser.pick(EventView, parsed),
        parser.pick(Repeats, parsed),
    )


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf stat", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "count")
    _add_targets(command_parser.add_argument_group("targets"))
    command_parser.add_argument(
        *("-e", "--event"), dest="groups", metavar="EVENT,...", action="append", type=_groups,
        default=[], help="what to count; {a,b}: together; may be given several times",
    )  # fmt: skip
    add_list(command_parser, "events", find_events)
    output = event_command.add_output(command_parser, ("text", "json", "csv"))
    rows = output.add_mutually_exclusive_group()
    rows.add_argument(
        "-A", "--per-cpu", dest="by", action="store_const", const="cpu", help="each CPU alone"
    )
    rows.add_argument(
        *("--per-thread",), dest="by", action="store_const", const="thread",
        help="each thread alone, of those that exist when the run begins",
    )  # fmt: skip
    times = output.add_mutually_exclusive_group()
    times.add_argument(
        *("-i", "--interval"), dest="interval_s", metavar="SECONDS", type=seconds,
        help="print what was counted in each interval",
    )  # fmt: skip
    times.add_argument(
        "-I", dest="interval_s", metavar="MS", type=_interval_ms, help="the same in milliseconds"
    )
    output.add_argument(
        *("-r", "--repeat"), dest="runs", metavar="N", type=positive_int,
        help="run the command N times; print means and standard errors",
    )  # fmt: skip
    parser.take_defaults(command_parser, StatOptions, EventView, Repeats)
    return command_parser


def _add_targets(group: argparse._ArgumentGroup) -> None:
    parser.add_targets(group)
    group.add_argument(
        *("-a", "--all-cpus"), action="store_true",
        help="every task, as long as the command behind -- runs",
    )  # fmt: skip
    group.add_argument(
        *("--for-each-cgroup",), metavar="PATH,...", type=_patterns,
        help="each cgroup v2 alone that fits a pattern, with those below it; of all tasks",
    )  # fmt: skip
    group.add_argument(
        *("-b", "--bpf-prog"), dest="bpf_programs", metavar="ID,...", type=_program_ids,
        help="BPF programs: what happens while they run, for each alone",
    )  # fmt: skip
    group.add_argument(
        *("--shared", "--bpf-counters"), dest="shared", action="store_true",
        help="one set of counters for all sessions that count these events",
    )  # fmt: skip
    group.add_argument(
        *("--bpffs",), metavar="DIR",
        help="where --shared finds them: a bpf file system (default: /sys/fs/bpf)",
    )  # fmt: skip
    group.add_argument(
        *("--no-inherit",), dest="inherit", action="store_false",
        help="without threads and children that start during the run",
    )  # fmt: skip


def _groups(text: str) -> Groups:
    try:
        return parse_groups(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _patterns(text: str) -> tuple[str, ...]:
    if not all(patterns := tuple(text.split(","))):
        raise ArgumentTypeError(f"a pattern of {text!r} is empty")
    return patterns


def _program_ids(text: str) -> tuple[int, ...]:
    return tuple(positive_int(word) for word in text.split(","))


def _interval_ms(text: str) -> float:
    return positive_int(text) / _MILLI
