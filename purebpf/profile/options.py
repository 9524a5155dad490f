"""What the user asks of the profiler."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

from purebpf.cli import parser
from purebpf.cli.arguments import positive_int
from purebpf.cli.destination import Destination, add_destinations, add_folded, destinations
from purebpf.cli.headline import stacks, until, whose

__all__ = ["DEFAULT_FREQUENCY", "Options", "build_parser", "parse", "title"]

DEFAULT_FREQUENCY = 49
"""Hertz: odd, so that it does not run in step with what happens 50 or 100 times a second."""

_DESCRIPTION = """\
Show where the CPUs spend their time: sample at regular intervals what runs on
each of them, count equal stacks in the kernel, and print the stacks with their
counts, the hottest last."""

_EPILOG = """\
examples:
  python -m purebpf.profile 5             the whole machine, for 5 seconds
  python -m purebpf.profile               until Ctrl-C, which prints the result
  python -m purebpf.profile -F 99 -p 185  process 185, at 99 Hertz
  python -m purebpf.profile -L 2040,2041  two threads
  python -m purebpf.profile -U 5          only user stacks (-K: only kernel)
  python -m purebpf.profile -f 5 > out    folded stacks, for flame graphs
  python -m purebpf.profile -o out.html 5   a flame graph; docs/formats.md
  python -m purebpf.profile -o out.json.gz -o out.pb.gz 5
  python -m purebpf.profile --serve       a live flame graph in a browser
  python -m purebpf.profile -- make test  a command and its children

The loss line at the end, on standard error, says what the numbers do not
include: samples expected and seen, stacks that found no place or were cut,
frames without a name.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root. Linux 5.10 or later. docs/profile.md"""


class Options(NamedTuple):
    """A frozen request. Empty tuples and None mean: no restriction.

    `frequency` is in Hertz; with `period`, a sample is taken every so many events instead.
    `duration_s` None: until a signal, or until `command` ends. `serve` is where to listen (host
    and port) for browsers that look on.
    """

    pids: tuple[int, ...] = ()
    tids: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    cgroup: str | None = None
    cgroup_map: str | None = None
    mount_namespace_map: str | None = None
    frequency: int = DEFAULT_FREQUENCY
    period: int | None = None
    user_stacks: bool = True
    kernel_stacks: bool = True
    include_idle: bool = False
    duration_s: float | None = None
    command: tuple[str, ...] = ()
    hash_storage_size: int = 40960
    stack_storage_size: int = 16384
    to: tuple[Destination, ...] = (Destination("text", None),)
    delimited: bool = False
    annotations: bool = False
    addresses: bool = False
    serve: tuple[str, int] | None = None
    strict: bool = False
    lines: bool = False
    debuginfod: bool = False


def parse(argv: Sequence[str]) -> Options:
    """Options from the command line; exits with status 2 and a usage line when they are wrong."""
    made = build_parser()
    found = parser.parse(made, argv, {"-p": "pids", "-L": "tids", "-C": "cpus"})
    return Options(
        pids=found.pids,
        tids=found.tids,
        cpus=found.cpus,
        cgroup=found.cgroup,
        cgroup_map=found.cgroupmap,
        mount_namespace_map=found.mntnsmap,
        frequency=found.frequency or DEFAULT_FREQUENCY,
        period=found.count,
        user_stacks=not found.kernel_stacks_only,
        kernel_stacks=not found.user_stacks_only,
        include_idle=found.include_idle,
        duration_s=found.duration_s,
        command=found.command,
        hash_storage_size=found.hash_storage_size,
        stack_storage_size=found.stack_storage_size,
        to=destinations(made, found.formats, found.outputs),
        delimited=found.delimited,
        annotations=found.annotations,
        addresses=found.address,
        serve=found.serve,
        strict=found.strict,
        lines=found.lines,
        debuginfod=found.debuginfod,
    )


def title(options: Options) -> str:
    """The sentence that heads the output, in the words of bcc's profile."""
    rate = f"every {options.period} events" if options.period else f"{options.frequency} Hertz"
    by = stacks(user=options.user_stacks, kernel=options.kernel_stacks)
    where = " on CPU#" + ",".join(map(str, options.cpus)) if options.cpus else ""
    return f"Sampling at {rate} of {whose(options)} by {by}{where}{until(options)}"


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    made = parser.new("purebpf.profile", _DESCRIPTION, _EPILOG)
    parser.add_duration(made, "sample")
    _add_targets(made.add_argument_group("what to sample"))
    _add_sampling(made.add_argument_group("how to sample"))
    _add_output(made.add_argument_group("output"))
    return made


def _add_targets(group: argparse._ArgumentGroup) -> None:
    parser.add_targets(group, thread="-L")
    group.add_argument("-I", "--include-idle", action="store_true", help="the idle task too")
    group.add_argument("--cgroupmap", metavar="PATH", help="cgroup ids in this pinned BPF map")
    group.add_argument("--mntnsmap", metavar="PATH", help="mount namespaces in this pinned BPF map")


def _add_sampling(group: argparse._ArgumentGroup) -> None:
    rate = group.add_mutually_exclusive_group()
    rate.add_argument(
        *("-F", "--frequency"), metavar="HZ", type=positive_int,
        help=f"samples a second on each CPU (default {DEFAULT_FREQUENCY})",
    )  # fmt: skip
    rate.add_argument(
        *("-c", "--count"), metavar="N", type=positive_int,
        help="sample every N events: CPU cycles, or nanoseconds of cpu-clock without a PMU",
    )  # fmt: skip
    parser.add_stack_kinds(group)
    parser.add_storage(group, "(process, stacks)")


def _add_output(group: argparse._ArgumentGroup) -> None:
    add_folded(group)
    add_destinations(group)
    parser.add_delimited(group)
    group.add_argument(
        *("-a", "--annotations"), action="store_true", help="_[k] on kernel frames (folded)"
    )
    group.add_argument(
        *("-A", "--address"), action="store_true", help="raw addresses before names (text)"
    )
    parser.add_serve(group)
    parser.add_names(group)
    parser.add_strict(group)
