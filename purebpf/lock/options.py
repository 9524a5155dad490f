"""The command line of `purebpf lock`."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Sequence
from typing import NamedTuple

from purebpf.cli import event_command, parser
from purebpf.cli.arguments import milliseconds, positive_int
from purebpf.cli.event_command import EventView
from purebpf.lock.request import GROUPINGS, TYPES, Options

__all__ = ["LockView", "build_parser", "parse"]

_DESCRIPTION = """\
Show which locks of the kernel tasks wait for, how long, and who holds them: by
caller, lock, process, thread, owner or cgroup, and slow waits as they end."""

_EPILOG = """\
examples:
  purebpf lock 10               by the function that asks for the lock
  purebpf lock --by lock 10     by lock: inodes, run queues, mmap_lock, ...
  purebpf lock --by owner 10    who holds the locks that others wait for
  purebpf lock --stacks 10      with the kernel stack of each caller
  purebpf lock --slower 5       also each wait of 5 ms or more
  purebpf lock --type mutex,rwsem -p 185 --tree 10
  purebpf lock --format json -o lock.jsonl 60
  purebpf lock -- make test     a command and its children

Types: semaphore spinlock rwsem rwlock rt-mutex rwlock-rt pcpu-sem mutex; :R and
:W tell readers from writers (rwsem:W).

Percentiles are at most a quarter off; counts and sums are exact. The loss line
at the end, on standard error, says what they do not include.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root, and the kernel's BTF. Linux 5.19 or
later. docs/lock.md"""


class LockView(NamedTuple):
    """What text shows beyond `EventView`: so many rows."""

    histogram: bool = False
    most: int = 20


def parse(argv: Sequence[str]) -> tuple[Options, EventView, LockView]:
    """What to measure, and how to show it; exits with status 2 when the options are wrong."""
    parsed = parser.parse(build_parser(), argv, {"-p": "pids", "-t": "tids"})
    return (
        parser.pick(Options, parsed),
        parser.pick(EventView, parsed),
        parser.pick(LockView, parsed),
    )


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    made = parser.new("purebpf.lock", _DESCRIPTION, _EPILOG)
    parser.add_duration(made, "measure")
    event_command.add_targets(made, cpus="waits that begin on these CPUs")
    group = made.add_argument_group("which waits")
    group.add_argument(
        *("--slower",), dest="slower_ms", metavar="MS", type=milliseconds,
        help="also show each wait that took so long (0: all)",
    )  # fmt: skip
    group.add_argument(
        *("-Y", "--type"), dest="types", metavar="TYPE,...", type=_types, default=(),
        help="only locks of these types",
    )  # fmt: skip
    output = event_command.add_output(made)
    output.add_argument("--by", choices=GROUPINGS, default="caller", help="a row for each")
    output.add_argument("--stacks", action="store_true", help="the kernel stack below each row")
    output.add_argument(
        "--hist", dest="histogram", action="store_true", help="a histogram below each row"
    )
    output.add_argument(
        *("-E", "--entries"), dest="most", metavar="N", type=positive_int, default=20,
        help="the N rows with most time (default %(default)s)",
    )  # fmt: skip
    output.add_argument(
        *("--rows",), metavar="N", type=positive_int, default=4096,
        help="maximum number of rows (default %(default)s)",
    )  # fmt: skip
    return made


def _types(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    known = {*TYPES, *(name.partition(":")[0] for name in TYPES)}
    for name in names:
        if name not in known:
            raise ArgumentTypeError(
                f"unknown type of lock {name!r} (known: {', '.join(TYPES)}, or without :R and :W)"
            )
    return names
