"""`purebpf convert`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from purebpf.cli import command
from purebpf.cli.destination import ResultOptions, says_when, write
from purebpf.tools.convert.options import build_parser, parse

__all__ = ["build_parser", "main"]

NAME = "purebpf convert"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(path: str, view: ResultOptions) -> int:
    from purebpf.cli.progress import doing
    from purebpf.cli.source_info import add_lines, debuginfod, say_left_out
    from purebpf.observe.saved import profile_loader

    fetch = debuginfod(wanted=view.debuginfod)
    with doing(f"reading {path}"):
        profile = profile_loader.read(path, timed=says_when(view.to), fetch=fetch)
    here = os.uname().nodename
    is_here = here in (profile.about.get("host"), profile.about.get("hostname"))
    profile = add_lines(profile, lines=view.lines, fetch=fetch, by_build_id=not is_here)
    write(profile, view)
    say_left_out(profile, path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
