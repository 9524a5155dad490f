"""The command line of `purebpf fleet`."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Sequence
from typing import NamedTuple

from purebpf.cli import parser
from purebpf.cli.arguments import address, positive_int, seconds
from purebpf.cli.destination import Destination, add_json, destinations
from purebpf.services.fleet.request import FleetOptions, Query

__all__ = ["Parsed", "build_parser", "parse"]

_DESCRIPTION = """\
Profiles of many hosts: a hub takes what agents send and stores it as Parquet
files in a directory; then ask about any range of time, service, build and host.

  hub        take windows by OTLP over HTTP
  import     take files: those of agents, pprof, saved profiles
  compact    sort the hours that are over (once an hour)
  prune      remove old days
  check      see whether all files are there and agree
  symbolize  ask debuginfod for the functions that hosts had no name for

  top        functions, by their own time
  flamegraph stacks, in any format
  diff       what changed between two builds, hosts, or ranges
  regressions  what changed more than chance explains, with how sure that is
  timeline   what each service used, over time
  hosts      hosts, their last window, their clocks
  coverage   which part of the samples a range has
  serve      all of these as pages, for a browser
  sql        any statement about samples, windows, series, stacks, frames"""

_EPILOG = """\
examples:
  purebpf fleet hub --store /srv/profiles
  purebpf fleet top --store /srv/profiles --since 24h --service shop
  purebpf fleet flamegraph --store /srv/profiles --host web-3 -o web-3.html
  purebpf fleet diff --store /srv/profiles --a build=ab12 --b build=cd34
  purebpf fleet serve --store /srv/profiles
  purebpf fleet sql --store /srv/profiles 'select count(*) from samples'

Every answer ends with its coverage: how many hosts, which part of the windows
they should have sent, and what was lost.

exit status: 0; 1 an error; 2 a wrong option; 3 with --fail-over or --strict.

Needs no privileges, and purebpf[fleet]: DuckDB, pyarrow, starlette, uvicorn.
docs/fleet.md"""

_ASKING = ("top", "flamegraph", "diff", "regressions", "timeline", "hosts", "coverage", "sql")
_TRANSLATED = ("top", "flamegraph", "diff", "timeline", "hosts", "sql")
_KEEPING = ("hub", "serve", "import", "compact", "prune", "check", "symbolize")
_PORTS = {"hub": 4318, "serve": 4319}
_PRINTED = {"flamegraph": "folded"}


class Parsed(NamedTuple):
    """The request, the destination of its answer, and the flag that makes missing data an error."""

    options: FleetOptions
    to: tuple[Destination, ...]
    strict: bool


def parse(argv: Sequence[str]) -> Parsed:
    """The options; exits with status 2 and a usage line when they are wrong."""
    command_parser = build_parser()
    parsed = command_parser.parse_intermixed_args(argv)
    action = parsed.action
    if parsed.words and action not in ("import", "sql"):
        command_parser.error(f"{action} takes no {parsed.words[0]!r}")
    if not parsed.words and action in ("import", "sql"):
        command_parser.error("import FILE ..." if action == "import" else "sql STATEMENT")
    if action in ("diff", "regressions") and not (parsed.a and parsed.b):
        command_parser.error(
            f"{action} compares --a with --b, such as --a build=ab12 --b build=cd34"
        )
    if action == "prune" and parsed.keep_days is None:
        command_parser.error("prune --keep DAYS")
    if parsed.outputs and action not in ("flamegraph", "diff"):
        command_parser.error(f"-o is for flamegraph and diff; {action} prints a text")
    if parsed.engine != "duckdb" and action not in _TRANSLATED:
        command_parser.error(f"{action} is answered by DuckDB only, not by {parsed.engine}")
    where = [*parsed.labels]
    for name, value in (
        ("service", parsed.service), ("version", parsed.build), ("host", parsed.host)
    ):  # fmt: skip
        if value is not None:
            where.append((name, value))
    to = destinations(
        command_parser, parsed.formats, parsed.outputs, default=_PRINTED.get(action, "text")
    )
    parsed.words = tuple(parsed.words)
    parsed.where = tuple(where)
    parsed.query = parser.pick(Query, parsed)
    parsed.sides = (parsed.a, parsed.b)
    parsed.listen = parsed.listen or ("127.0.0.1", _PORTS.get(action, 0))
    return Parsed(parser.pick(FleetOptions, parsed), to, parsed.strict)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf fleet", _DESCRIPTION, _EPILOG, usage="ACTION")
    command_parser.add_argument(
        "action", metavar="ACTION", choices=(*_KEEPING, *_ASKING), help="one of those above"
    )
    command_parser.add_argument(
        "words", nargs="*", metavar="FILE", help="of import; the statement of sql"
    )
    command_parser.add_argument(
        "--store", metavar="DIR",
        help="where the tables are; or s3://BUCKET/FOLDER (default %(default)s)",
    )  # fmt: skip
    _add_question(command_parser.add_argument_group("which samples"))
    _add_answers(command_parser.add_argument_group("answers"))
    _add_keeping(command_parser.add_argument_group("hub and store"))
    parser.take_defaults(command_parser, FleetOptions, Query)
    command_parser.set_defaults(listen=None)  # the port depends on the action
    return command_parser


def _add_question(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--since", metavar="TIME",
        help="90m, 24h, 7d ago, or 2026-11-23T07:00, UTC (default %(default)s)",
    )  # fmt: skip
    group.add_argument("--until", metavar="TIME", help="the same (default now)")
    group.add_argument("--service", metavar="NAME", help="of this service only")
    group.add_argument("--build", metavar="ID", help="of this build of it: 12 digits")
    group.add_argument("--host", metavar="NAME", help="of this host only")
    group.add_argument(
        "--label", dest="labels", metavar="NAME=VALUE", type=_pair, action="append", default=[],
        help="namespace, pod, container, unit, comm, or a label of yours; repeatable",
    )  # fmt: skip
    group.add_argument(
        "--kind", choices=("cpu", "offcpu", "runqueue"),
        help="what was measured (default %(default)s)",
    )  # fmt: skip


def _add_answers(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--a", metavar="NAME=VALUE,...", type=_pairs, default=(),
        help="diff, regressions: one side, by any of the above: build=ab12, host=web-3,since=2h",
    )  # fmt: skip
    group.add_argument(
        "--b", metavar="NAME=VALUE,...", type=_pairs, default=(), help="the other side"
    )
    group.add_argument(
        "--fail-over", metavar="PCT", type=_points,
        help="status 3 if a function's own time grew by more points (regressions: at least)",
    )  # fmt: skip
    group.add_argument(
        *("-n", "--top"), dest="rows", metavar="N", type=positive_int,
        help="lines of a table (default %(default)s)",
    )  # fmt: skip
    parser.add_old_name(group, "--rows", "--top", dest="rows", type=positive_int)
    group.add_argument(
        *("-o", "--output"), dest="outputs", metavar="FILE", action="append", default=[],
        help="write to FILE, in the format of its name, when it is complete; repeatable; -: "
             "standard output",
    )  # fmt: skip
    group.add_argument(
        "--format", dest="formats", metavar="FORMAT", action="append", default=[],
        help="of flamegraph: text, folded, json, html, pprof, ...; of diff: text, html, json",
    )  # fmt: skip
    add_json(group)
    group.add_argument(
        "--print",
        dest="shown",
        action="store_true",
        help="sql: print the statement with its files, and end",
    )
    group.add_argument(
        "--strict", action="store_true", help="exit with status 3 if anything was lost"
    )
    group.add_argument(
        "--engine", metavar="NAME",
        help="who reads the tables: duckdb (default), clickhouse, spark, spark://HOST:PORT",
    )  # fmt: skip


def _add_keeping(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--listen", metavar="ADDR:PORT", type=address,
        help="where hub or serve listens (default 127.0.0.1, port 4318 or 4319)",
    )  # fmt: skip
    group.add_argument(
        "--tokens", metavar="FILE",
        help="lines TOKEN [HOST]: who may send, and as which host; those without one read, too",
    )  # fmt: skip
    group.add_argument("--certificate", metavar="FILE", help="TLS: PEM, with its chain")
    group.add_argument("--key", metavar="FILE", help="TLS: the private key")
    group.add_argument(
        "--insecure", action="store_true", help="listen beyond this machine without TLS"
    )
    group.add_argument(
        "--pause", dest="pause_s", metavar="SECONDS", type=seconds,
        help="how long windows wait to be stored together, and their answers (default 5)",
    )  # fmt: skip
    group.add_argument(
        "--keep", dest="keep_days", metavar="DAYS", type=_days, help="prune: what stays"
    )


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    return tuple(map(_pair, text.split(",")))


def _points(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 100:
        raise ArgumentTypeError(f"{text!r} is not a number from 0 to 100")
    return value


def _days(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 < value < 1e5:
        raise ArgumentTypeError(f"{text!r} is not a number of days")
    return value
