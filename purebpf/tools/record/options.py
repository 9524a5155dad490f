"""The command line of `purebpf record`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from purebpf.cli import parser
from purebpf.cli.arguments import positive_int
from purebpf.cli.listing import add_list, find_events
from purebpf.tools.record.request import (
    COPY_BYTES,
    COPY_PAGES,
    DEFAULT_EVENT,
    FREQUENCY,
    LARGEST_COPY,
    RING_PAGES,
    EventOption,
    RecordOptions,
)

__all__ = ["build_parser", "parse"]

_MAX_PAGES = 1 << 18
"""Pointers to all of a ring's pages must fit in one allocation: rb_alloc(), 4 MiB."""

_DESCRIPTION = """\
Record samples into a perf.data file, which perf report, perf script, hotspot
and Firefox Profiler open; purebpf.tools.report prints it. A filter drops
unwanted samples in the kernel."""

_EPILOG = """\
examples:
  purebpf record -g -p 185 10          stacks of a process, 10 seconds
  purebpf record -g -- make test       a command and its children
  purebpf record -a -F 99 -g 60        the whole machine
  purebpf record --call-graph copy -- ./server   without frame pointers
  purebpf record -e page-faults -c 1 -d -- ls
  purebpf record -a --filter 'comm == mysqld, ip < 0x800000000000' 10
  purebpf record -a -e cpu-clock --filter 'cpu == 0' \\
                              -e sched:sched_switch --filter 'prev_pid > 1000' 5

The loss line at the end, on standard error, says what the file does not have.

exit status: 0; 1 an error; 2 a wrong option, event or filter; 3 something was
lost, with --strict; that of the command, with --.

Needs CAP_PERFMON, or root; a filter CAP_BPF too. You can record your own
processes without them if kernel.perf_event_paranoid is 2 or less.
docs/record.md"""


def parse(argv: Sequence[str]) -> RecordOptions:
    """Options from the command line; exits with status 2 and a usage line when they are wrong."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {})
    given = [
        option
        for option, value in (
            ("-a", parsed.all_cpus),
            ("-p", parsed.pids),
            ("-t", parsed.tids),
            ("-u", parsed.uid is not None),
            ("--comm", parsed.comm is not None),
            ("-G", parsed.cgroup is not None),
        )
        if value
    ]
    if len(given) > 1:
        command_parser.error(f"{given[0]} and {given[1]} exclude each other: choose one target")
    parsed.events = _events(command_parser, parsed.events)
    if parsed.explain and not any(event.filters for event in parsed.events):
        command_parser.error("--explain needs a filter: add --filter EXPR")
    if parsed.output == "-":
        command_parser.error("-o -: the file's header grows with it, so it cannot be a pipe")
    if parsed.ring_pages:
        parsed.ring_pages = 1 << (parsed.ring_pages - 1).bit_length()
    parsed.copy_bytes = parsed.call_graph or 0
    parsed.callchains = parsed.callchains or parsed.call_graph is not None
    del parsed.call_graph
    if parsed.serve is not None:
        if parsed.copy_bytes:
            command_parser.error(
                "--serve cannot unwind copied stacks in time: use purebpf profile --serve"
            )
        parsed.callchains = True
    return RecordOptions(**vars(parsed))


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf record", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "record")
    _add_events(command_parser.add_argument_group("which samples"))
    _add_targets(command_parser.add_argument_group("targets"))
    _add_fields(
        command_parser.add_argument_group("fields of a sample, besides ip, pid, tid, time, period")
    )
    group = command_parser.add_argument_group("output")
    group.add_argument(
        *("-o", "--output"), metavar="FILE",
        help="write to FILE when it is complete (default: perf.data)",
    )  # fmt: skip
    parser.add_serve(group)
    parser.add_strict(group)
    group.add_argument(
        *("--explain",), action="store_true",
        help="print what the filters mean and how they run, then exit",
    )  # fmt: skip
    parser.take_defaults(command_parser, RecordOptions)
    return command_parser


def _add_events(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        *("-e", "--event"), dest="events", metavar="EVENT", action=_AddEvents, default=[],
        help="cycles (or cpu-clock without a PMU; the default), page-faults, r01c2, "
        "cpu/event=0x3c/, sched:sched_switch, each with :u :k :p; EVENT[,EVENT...]",
    )  # fmt: skip
    add_list(group, "events", find_events)
    group.add_argument(
        *("--filter",), dest="events", metavar="EXPR", action=_AddFilter,
        help="keep samples that match, for the events of the -e before; repeat to require both",
    )  # fmt: skip
    parser.add_program(group)
    rate = group.add_mutually_exclusive_group()
    parser.add_frequency(rate, f"samples a second (default {FREQUENCY}; of tracepoints: each one)")
    rate.add_argument(
        *("-c", "--period"), dest="period", metavar="N", type=positive_int,
        help="a sample every so many events (of cpu-clock: ns)",
    )  # fmt: skip
    rate.add_argument("--count", dest="period", type=positive_int, help=argparse.SUPPRESS)


def _add_targets(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        *("-a", "--all-cpus"), action="store_true",
        help="all tasks on all CPUs (the default without a command)",
    )  # fmt: skip
    parser.add_targets(
        group, user=("-u", "--uid"), users="processes of this user, and their children"
    )


def _add_fields(group: argparse._ArgumentGroup) -> None:
    chains = group.add_mutually_exclusive_group()
    chains.add_argument("-g", dest="callchains", action="store_true", help="the call chain")
    chains.add_argument(
        *("--call-graph",), metavar="MODE", type=_call_graph,
        help="the same: fp, by frame pointers; copy[,BYTES], copies registers and "
        f"BYTES of the user stack ({COPY_BYTES}), to be unwound by report or perf",
    )  # fmt: skip
    for options, name, text in (
        (("-d", "--data"), "addresses", "the data address"),
        (("-T", "--timestamp"), "timestamps", "the time (every sample has it)"),
        (("-W", "--weight"), "weights", "the weight"),
        (("--sample-cpu",), "sample_cpu", "the CPU (with -a and -C anyway)"),
        (("--phys-data",), "phys_data", "the physical data address"),
        (("--data-page-size",), "data_page_size", "the page size of the data"),
        (("--code-page-size",), "code_page_size", "the page size of the code"),
        (("--all-cgroups",), "all_cgroups", "the cgroup"),
        (("--transaction",), "transactions", "the flags of a transaction"),
        (("--sample-identifier",), "identifiers", "the event ID (every sample has it)"),
    ):
        group.add_argument(*options, dest=name, action="store_true", help=text)
    group.add_argument(
        *("-m", "--mmap-pages"), dest="ring_pages", metavar="PAGES", type=_pages,
        help=f"pages of each CPU's ring (default {RING_PAGES}; {COPY_PAGES} with copies)",
    )  # fmt: skip


class _AddEvents(argparse.Action):
    """Appends a list of events, without filters so far."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        _option: str | None = None,
    ) -> None:
        namespace.events = [*namespace.events, (values, [])]


class _AddFilter(argparse.Action):
    """Gives the events of the last `-e` one more filter; without `-e`, the default event."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        _option: str | None = None,
    ) -> None:
        namespace.events = namespace.events or [(None, [])]
        namespace.events[-1][1].append(values)


def _events(
    command_parser: argparse.ArgumentParser, lists: list[tuple[str | None, list[str]]]
) -> tuple[EventOption, ...]:
    if not lists:
        return ()
    from purebpf.loader.perf.event_parser import split

    if lists[0][0] is None and len(lists) > 1:
        command_parser.error("--filter must follow the -e that it applies to")
    return tuple(
        EventOption(name, tuple(filters))
        for text, filters in lists
        for name in split(DEFAULT_EVENT if text is None else text)
    )


def _call_graph(text: str) -> int:
    """Bytes of the stack to copy; 0 to follow frame pointers. `dwarf` is perf's word for copies."""
    mode, comma, size = text.partition(",")
    if text == "fp":
        return 0
    if mode not in ("copy", "dwarf"):
        raise argparse.ArgumentTypeError(
            f"unknown call graph mode {mode!r}; known: fp (frame pointers), copy[,BYTES]"
        )
    count = positive_int(size) if comma else COPY_BYTES
    if count > LARGEST_COPY or count % 8:
        raise argparse.ArgumentTypeError(
            f"cannot copy {count} bytes of a stack: expected a multiple of 8 up to {LARGEST_COPY}"
        )
    return count


def _pages(text: str) -> int:
    pages = positive_int(text)
    if pages > _MAX_PAGES:
        raise argparse.ArgumentTypeError(
            f"{text!r} is too large: the kernel takes at most {_MAX_PAGES} pages"
        )
    return pages
