"""`purebpf view`."""

from __future__ import annotations

import select
import sys
from collections.abc import Sequence

from purebpf.cli import command
from purebpf.tools.view.options import ViewOptions, build_parser, parse

__all__ = ["build_parser", "main"]

NAME = "purebpf view"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: ViewOptions) -> int:
    import gc

    from purebpf.measure.stop import Stop
    from purebpf.tools.view.folder import Folder
    from purebpf.tools.view.server import FolderServer

    folder = Folder(options.folder)
    gc.enable()  # it runs for days
    with Stop() as stop, FolderServer(folder, options.where) as server:
        command.say(f"profiles of {options.folder}: {server.url}")
        select.select([stop], [], [])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
