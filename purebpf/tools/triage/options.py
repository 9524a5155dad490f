"""The command line of `purebpf triage`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import seconds
from purebpf.tuples import NamedTuple

__all__ = ["TriageOptions", "build_parser", "parse"]

DEFAULT_S = 10.0

_DESCRIPTION = """\
Name the cause of a slow service: measure the whole machine for ten seconds and
print at most seven findings, each with its cost, its evidence and the command
that shows more. Where nothing is wrong, one line says so."""

_EPILOG = """\
examples:
  purebpf triage                    ten seconds
  purebpf triage 30                 half a minute, for what is rare
  purebpf triage --container web    what makes one container slow
  purebpf triage --json | jq .findings[0]
  purebpf triage --save facts.json  keep what was measured
  purebpf triage --load facts.json  find in it again, anywhere
  purebpf triage --since 10m        from the windows of `purebpf agent`

exit status: 0 nothing found; 1 an error; 2 a wrong option; 3 something was
lost, with --strict; 10 there are findings.

Needs CAP_BPF and CAP_PERFMON, or root, and the kernel's BTF. Linux 5.15 or
later. docs/triage.md"""


class TriageOptions(NamedTuple):
    """The duration of the look, the processes that matter, and the form of the result.

    `purebpf.measure.options` describes `pids`, `comm`, `tree`, `uid` and `cgroup`.
    """

    duration_s: float = DEFAULT_S
    pids: tuple[int, ...] = ()
    comm: str | None = None
    tree: bool = False
    uid: int | None = None
    cgroup: str | None = None
    container_name: str | None = None
    format: str | None = None
    save: str | None = None
    load: str | None = None
    since_s: float | None = None
    folder: str | None = None
    output: str | None = None
    strict: bool = False
    verbose: bool = False

    @property
    def is_stored(self) -> bool:
        """True if the answer comes from windows that an agent stored."""
        return self.since_s is not None or self.folder is not None

    @property
    def tids(self) -> tuple[int, ...]:
        """No threads: findings are about processes."""
        return ()

    @property
    def cpus(self) -> tuple[int, ...]:
        """No CPUs: findings are about processes."""
        return ()

    @property
    def has_target(self) -> bool:
        """True if some processes matter, and not the whole machine."""
        return bool(self.pids or self.comm or self.cgroup or self.container_name) or (
            self.uid is not None
        )


def parse(argv: Sequence[str]) -> TriageOptions:
    """Options from the command line; exits with status 2 and a usage line when they are wrong."""
    command_parser = build_parser()
    options = parser.pick(TriageOptions, parser.parse(command_parser, argv, {}, awaits_name=False))
    if (options.load or options.is_stored) and options._replace(container_name=None).has_target:
        command_parser.error(
            "--load, --since and --from know processes of the past, by --container NAME only"
        )
    return options


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf triage", _DESCRIPTION, _EPILOG, usage="[duration]")
    parser.add_duration(command_parser, "look", default="%(default)g")
    whom = command_parser.add_argument_group(
        "findings about these processes (the whole machine is measured)"
    )
    parser.add_targets(whom, threads=None, cpus=None, container="container_name")
    output = command_parser.add_argument_group("output")
    parser.add_format(output, about="json: the findings, schema 1")
    output.add_argument("--save", metavar="FILE", help="write the facts to a file, too")
    output.add_argument("--load", metavar="FILE", help="find in saved facts instead of measuring")
    stored = command_parser.add_argument_group("an incident that is over")
    stored.add_argument(
        *("--since",), dest="since_s", metavar="TIME", type=seconds,
        help="answer from the windows that an agent stored since 10m, 2h ago",
    )  # fmt: skip
    stored.add_argument(
        *("--from",), dest="folder", metavar="DIR",
        help="where they are: the directory of a sink, or the agent's spool (default "
        "/var/lib/purebpf)",
    )  # fmt: skip
    parser.add_output(output)
    parser.take_defaults(command_parser, TriageOptions)
    return command_parser
