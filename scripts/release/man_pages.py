"""Write a manual page for purebpf and one for each command, from the parsers of the commands.

python scripts/release/man_pages.py FOLDER

argparse-manpage formats them. The date is $SOURCE_DATE_EPOCH's, so that the same tree gives the
same pages.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from argparse_manpage.manpage import Manpage

from purebpf._version import __version__
from purebpf.commands import GROUPS, package_of

__all__ = ["main", "pages"]

_OVERVIEW = """\
Profilers and tracers for Linux that run at once: no compiler, no kernel headers. Each command has
a manual page of its own, purebpf-COMMAND(1), and the same text with --help.
"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name of each page, and its text."""
    yield (
        "purebpf",
        _format(_overview(), "purebpf", "profilers and tracers for Linux that run at once"),
    )
    for commands in GROUPS.values():
        for name, task in commands.items():
            parser = import_module(f"{package_of(name)}.__main__").build_parser()
            yield f"purebpf-{name}", _format(parser, f"purebpf-{name}", task)


def _overview() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "purebpf", usage="purebpf COMMAND [options] ...", description=_OVERVIEW, add_help=False
    )
    for title, commands in GROUPS.items():
        group = parser.add_argument_group(title)
        for name, task in commands.items():
            group.add_argument(name, help=task)
    return parser


def _format(parser: argparse.ArgumentParser, name: str, task: str) -> str:
    # the page's name has a hyphen, and its synopsis the words that are typed
    usage, parser.prog = parser.format_usage().removeprefix("usage: "), name
    parser.usage = usage.strip()
    data = {
        "project_name": "purebpf",
        "prog": name,
        "description": task,
        "version": __version__,
        "manual_title": "purebpf manual",
        "manual_section": 1,
    }
    return str(Manpage(parser, data))


def main(folder: str) -> None:
    """Write the pages, compressed as Debian keeps them."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, text in pages():
        (target / f"{name}.1.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(sys.argv[1])
