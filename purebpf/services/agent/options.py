"""The command line of `purebpf agent`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

from purebpf.cli import parser

__all__ = ["AgentOptions", "build_parser", "parse"]

_DESCRIPTION = """\
Profile this machine all the time, at little cost: where its CPUs spend their
time and, if asked for, where threads wait, by service and function. Each minute
is a file in a bounded spool, from which it goes to the sinks of the
configuration: a directory, OTLP over HTTP, Pyroscope, Parca. When a sink is
away, windows wait for it; sampling never does."""

_EPILOG = """\
examples:
  purebpf agent --example > agent.toml        a configuration to begin with
  purebpf agent --config agent.toml --check   what it would do
  purebpf agent --config agent.toml           until SIGTERM or Ctrl-C
  purebpf agent --config agent.toml --once    one whole window, sent at once
  purebpf agent --systemd > /etc/systemd/system/purebpf-agent.service

SIGHUP reads the configuration again; SIGUSR1 asks for a burst: some minutes at
a higher rate. One agent runs on a host.

exit status: 0; 1 an error; 2 a wrong option.

Needs CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_SYSLOG and CAP_DAC_READ_SEARCH,
or root. Linux 5.10 or later. docs/agent.md"""

CONFIG = "/etc/purebpf/agent.toml"


class AgentOptions(NamedTuple):
    """The configuration, and the action on it."""

    config: str = CONFIG
    check: bool = False
    once: bool = False
    verbose: bool = False
    example: bool = False
    systemd: bool = False
    daemonset: bool = False


def parse(argv: Sequence[str]) -> AgentOptions:
    """Options from the command line; exits with status 2 when they are wrong."""
    return parser.pick(AgentOptions, parser.parse(build_parser(), argv, {}))


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf agent", _DESCRIPTION, _EPILOG, usage="")
    command_parser.add_argument("--config", metavar="FILE", help="TOML file (default %(default)s)")
    command_parser.add_argument(
        "--check", action="store_true", help="check the configuration, and say what it does"
    )
    command_parser.add_argument(
        "--once",
        action="store_true",
        help="one whole window from now on, or up to Ctrl-C; send it, and end",
    )
    command_parser.add_argument(
        "-v", "--verbose", action="store_true", help="say a line for each window"
    )
    shipped = command_parser.add_argument_group("what is shipped")
    shipped.add_argument("--example", action="store_true", help="print a starter configuration")
    shipped.add_argument("--systemd", action="store_true", help="print the unit for systemd")
    shipped.add_argument("--daemonset", action="store_true", help="print one for Kubernetes")
    parser.take_defaults(command_parser, AgentOptions)
    return command_parser
