"""The command line of `purebpf lock`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import event_command, parser
from purebpf.cli.arguments import milliseconds, positive_int, seconds
from purebpf.cli.event_command import EventView
from purebpf.tools.lock.request import GROUPINGS, TYPES, USER_TYPES, LockOptions
from purebpf.tools.lock.selection import SORT_KEYS
from purebpf.tuples import NamedTuple

__all__ = ["LockView", "build_parser", "parse"]

_DESCRIPTION = """\
Show which locks tasks wait for, how long, and who holds them: by caller, lock,
process, thread, owner, cgroup or stack. Locks of the kernel, or those of
programs with --userspace (mutexes, the GIL: futex(2)); slow waits as they end."""

_EPILOG = """\
examples:
  purebpf lock 10               by the function that asks for the lock
  purebpf lock --by lock 10     by lock: inodes, run queues, mmap_lock, ...
  purebpf lock --by owner 10    who holds the locks that others wait for
  purebpf lock --stacks 10      with the kernel stacks of callers and owners
  purebpf lock -i 1             a table each second
  purebpf lock --slower 5ms     also each wait of 5 ms or more
  purebpf lock --userspace -p 185 10   locks of a program, by its functions
  purebpf lock --userspace --stacks -p 185   who waits where, and who let go
  purebpf lock --type mutex,rwsem -p 185 --tree 10
  purebpf lock --format json -o lock.jsonl 60
  purebpf lock --format folded -o lock.folded 10    for a flame graph
  purebpf lock -- make test     a command and its children

Types: semaphore spinlock rwsem rwlock rt-mutex rwlock-rt pcpu-sem mutex; :R and
:W tell readers from writers (rwsem:W). With --userspace: mutex rwlock GIL
"python lock" "java lock" monitor semaphore once futex; condition barrier join
idle only on request.

Percentiles are at most a quarter off; counts and sums are exact. The loss line
at the end, on standard error, says what they do not include.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root, and the kernel's BTF. Linux 5.19 or
later. docs/lock.md"""


FORMATS = ("text", "json", "csv", "folded")


class LockView(NamedTuple):
    """Options of the text beyond `EventView`: so many rows."""

    histogram: bool = False
    most: int = 20


def parse(argv: Sequence[str]) -> tuple[LockOptions, EventView, LockView]:
    """Return the waits to measure and the output options; exit with status 2 on a usage error."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {"-p": "pids", "-t": "tids"})
    _check(command_parser, parsed)
    return (
        parser.pick(LockOptions, parsed),
        parser.pick(EventView, parsed),
        parser.pick(LockView, parsed),
    )


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf lock", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "measure")
    event_command.add_targets(command_parser, cpus="waits that begin on these CPUs")
    group = command_parser.add_argument_group("which waits")
    group.add_argument(
        *("--slower",), dest="slower_ms", metavar="TIME", type=milliseconds,
        help="also show each wait that took so long: 500us, 10ms (0: all)",
    )  # fmt: skip
    group.add_argument(
        *("-Y", "--type"), dest="types", metavar="TYPE,...", type=_types,
        help="only locks of these types",
    )  # fmt: skip
    group.add_argument(
        *("-L", "--lock-filter"), dest="locks", metavar="LOCK,...", type=_types,
        help="only locks with these addresses, or with these words in their names (--by lock)",
    )  # fmt: skip
    group.add_argument(
        *("-S", "--callstack-filter"), dest="functions", metavar="NAME,...", type=_types,
        help="only waits with one of these words in a function of the kernel stack",
    )  # fmt: skip
    group.add_argument(
        "--userspace", action="store_true", help="locks of programs, not of the kernel: futex(2)"
    )
    output = event_command.add_output(command_parser, FORMATS)
    output.add_argument(
        *("-i", "--interval"), dest="interval_s", metavar="SECONDS", type=seconds,
        help="print a table at this interval",
    )  # fmt: skip
    output.add_argument("--by", choices=GROUPINGS, help="a row for each (default: caller)")
    output.add_argument(
        *("-k", "--key"), dest="sort", choices=tuple(SORT_KEYS), metavar="KEY",
        help=f"the order of rows: {', '.join(SORT_KEYS)} (default: wait_total)",
    )  # fmt: skip
    output.add_argument(
        "--stacks", action="store_true",
        help="below each row the stack of the wait, and of who held the lock or let go",
    )  # fmt: skip
    output.add_argument(
        "--hist", dest="histogram", action="store_true", help="a histogram below each row"
    )
    output.add_argument(
        *("-n", "--top", "-E", "--entries"), dest="most", metavar="N", type=positive_int,
        help="the N rows with most time (default %(default)s)",
    )  # fmt: skip
    output.add_argument(
        *("--map-entries",), dest="rows", metavar="N", type=positive_int,
        help="maximum number of rows (default %(default)s)",
    )  # fmt: skip
    parser.add_old_name(output, "--rows", "--map-entries", dest="rows", type=positive_int)
    parser.take_defaults(command_parser, LockOptions, EventView, LockView)
    command_parser.set_defaults(by="")  # what is measured decides
    return command_parser


def _check(command_parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> None:
    """Refuse options that exclude each other, and types that do not exist."""
    if parsed.format == "folded" and parsed.by not in ("", "stack"):
        command_parser.error(
            f"--format folded has a line for each stack: --by {parsed.by} excludes it"
        )
    if parsed.format == "folded" and parsed.interval_s is not None:
        command_parser.error("--format folded is of the whole run: -i excludes it")
    if parsed.format == "csv" and parsed.slower_ms is not None:
        command_parser.error("--format csv has rows only: --slower excludes it")
    _check_filters(command_parser, parsed)
    by_default = "stack" if parsed.format == "folded" else "caller"
    parsed.by = parsed.by or ("lock" if parsed.locks else by_default)
    choices = (
        USER_TYPES if parsed.userspace else {*TYPES, *(name.partition(":")[0] for name in TYPES)}
    )
    for name in parsed.types:
        if name not in choices:
            suffix = "" if parsed.userspace else ", or without :R and :W; others with --userspace"
            command_parser.error(
                f"unknown type of lock {name!r} (known: "
                f"{', '.join(USER_TYPES if parsed.userspace else TYPES)}{suffix})"
            )


def _check_filters(command_parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> None:
    """Refuse filters by lock and by function where rows do not tell locks or stacks."""
    for option, given, groupings in (
        ("-L", parsed.locks, ("lock",)),
        ("-S", parsed.functions, ("caller", "stack")),
    ):
        if not given:
            continue
        if parsed.userspace:
            command_parser.error(f"{option} is for locks of the kernel: --userspace excludes it")
        if parsed.by and parsed.by not in groupings:
            command_parser.error(f"{option} needs --by {' or '.join(groupings)}, not {parsed.by}")
    if parsed.locks and (parsed.functions or parsed.format == "folded"):
        command_parser.error("-L has a row for each lock: -S and --format folded exclude it")


def _types(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))
