"""The folder to show, and the address to listen on."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import address
from purebpf.tuples import NamedTuple

__all__ = ["ViewOptions", "build_parser", "parse"]

_DESCRIPTION = """\
Serve a page over a folder of saved profiles: a list, a time line of how much
each of them counted, the flame graph of one, and the difference of two. It
reads what convert reads, in the folder and those below it, and changes nothing."""

_EPILOG = """\
examples:
  purebpf view profiles/
  purebpf view --serve 127.0.0.1:8080 .
  purebpf view /var/lib/purebpf          what the agent has stored

It listens on 127.0.0.1 and answers only requests with the token of
the printed address. Ctrl-C ends it.

Needs no privileges, and runs on any system. docs/view.md"""


class ViewOptions(NamedTuple):
    """A frozen request; `where` is (host, port), port 0 any that is free."""

    folder: str
    where: tuple[str, int]


def parse(argv: Sequence[str]) -> ViewOptions:
    """Options from the command line; exits with status 2 and a usage line when they are wrong."""
    parsed = build_parser().parse_args(argv)
    return ViewOptions(parsed.folder, parsed.serve or ("127.0.0.1", 0))


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf view", _DESCRIPTION, _EPILOG, usage="DIR")
    command_parser.add_argument("folder", metavar="DIR", help="where the profiles are")
    command_parser.add_argument(
        "--serve", metavar="ADDR:PORT", type=address,
        help="where to listen (default: 127.0.0.1, a free port)",
    )  # fmt: skip
    return command_parser
