"""The command line of `purebpf top`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import positive_int, seconds
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.top.screens import SCREENS
from purebpf.tuples import NamedTuple

__all__ = ["View", "build_parser", "parse"]

_DESCRIPTION = """\
Show the functions that the CPUs run, in a new table every two seconds; or
system calls, locks, off-CPU time, run queues or the kernel's own work. On a
terminal, keys change what is measured, sort, filter, pause and look into rows:
h lists them. In a file or a pipe, one table follows the other. A table of the
whole run comes at the end."""

_EPILOG = """\
examples:
  purebpf top                   the whole machine, until Ctrl-C
  purebpf top -p 185            process 185
  purebpf top -i 1 -F 199 10    every second, finer, for 10 seconds
  purebpf top --by module -- make test
  purebpf top --screen syscalls --by process

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root. Linux 5.10 or later. docs/top.md"""

_FREQUENCY = 99
"""Samples a second: more than for a profile, as a table shows two seconds."""

BY = tuple(dict.fromkeys(by for kind in SCREENS.values() for by in kind.bys))
SORTS = tuple(dict.fromkeys(sort for kind in SCREENS.values() for sort in kind.sorts))


class View(NamedTuple):
    """The content of tables, and their interval; `interval_s` in seconds."""

    screen: str = "cpu"
    interval_s: float = 2.0
    lines: int = 20
    by: str = "function"
    sort: str = "self"
    strict: bool = False
    verbose: bool = False


def parse(argv: Sequence[str]) -> tuple[ProfileOptions, View]:
    """Return the target to sample and the output options; exit with status 2 on a usage error."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {"-p": "pids", "-L": "tids", "-C": "cpus"})
    parsed.by_thread = True
    kind = SCREENS[parsed.screen]
    for option, value, choices in (
        ("--by", parsed.by, kind.bys),
        ("--sort", parsed.sort, kind.sorts),
    ):
        if value is not None and value not in choices:
            command_parser.error(
                f"--screen {parsed.screen} has no {option} {value}: {', '.join(choices)}"
            )
    parsed.by = parsed.by or kind.bys[0]
    parsed.sort = parsed.sort or kind.sorts[0]
    named = (parsed.comm, parsed.cgroup, parsed.uid)
    chosen = parsed.pids or parsed.tids or any(name is not None for name in named)
    if not kind.has_targets and chosen:
        command_parser.error(
            f"--screen {parsed.screen} is of the whole machine: only CPUs can be chosen"
        )
    return parser.pick(ProfileOptions, parsed, is_partial=True), parser.pick(View, parsed)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf top", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "sample")
    parser.add_targets(command_parser.add_argument_group("what to sample"), thread=("-L",))
    how = command_parser.add_argument_group("how")
    parser.add_frequency(how, "samples a second on each CPU (default %(default)s)")
    how.add_argument(
        *("-i", "--interval"), dest="interval_s", metavar="S", type=seconds,
        help="seconds between tables (default 2)",
    )  # fmt: skip
    how.add_argument(
        *("-n", "--top"), dest="lines", metavar="N", type=positive_int,
        help="lines of a table in a file, a pipe and at the end (default %(default)s)",
    )  # fmt: skip
    how.add_argument("--screen", choices=SCREENS, help="default: cpu")
    how.add_argument("--by", choices=BY, metavar="KIND", help=_choices("bys"))
    how.add_argument("--sort", choices=SORTS, metavar="COLUMN", help=_choices("sorts"))
    parser.add_strict(how)
    parser.take_defaults(command_parser, ProfileOptions, View)
    command_parser.set_defaults(
        frequency=_FREQUENCY, by=None, sort=None
    )  # by and sort: as the screen says
    return command_parser


def _choices(heading: str) -> str:
    """Return the choices of each screen, the default first."""
    return "; ".join(f"{name}: {' '.join(getattr(SCREENS[name], heading))}" for name in SCREENS)
