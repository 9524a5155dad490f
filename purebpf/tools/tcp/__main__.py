"""`purebpf tcp`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from purebpf.cli import command, event_command
from purebpf.cli.event_command import EventView
from purebpf.tools.tcp.options import Shape, build_parser, parse
from purebpf.tools.tcp.request import TcpOptions

__all__ = ["build_parser", "main"]

NAME = "purebpf tcp"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: TcpOptions, view: EventView, shape: Shape) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.tools.tcp.render import Json, TcpText
    from purebpf.tools.tcp.session import Tcp

    follow = partial(event_command.run, partial(Tcp, options), options, view)
    doing = "Tracing TCP connections"
    if shape.summary:
        from purebpf.tools.tcp.summary import PeerTable

        table = PeerTable(top=shape.top, format=view.format)
        return follow(table, doing, losses=table.losses)
    if view.format == "json":
        return follow(Json(), doing)
    return follow(TcpText(verbose=view.verbose), doing)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
