"""The command line of `purebpf new`."""

from __future__ import annotations

import argparse
import keyword
import re
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.tuples import NamedTuple

__all__ = ["NewOptions", "build_parser", "parse"]

_DESCRIPTION = """Begin a BPF tool: a folder NAME with C, Python, a test and a
pyproject.toml. The C is compiled at once where there is a compiler: an
installed clang, or ziglang's (pip install "purebpf[build]").
"""

_EXAMPLES = """examples:
  purebpf new demo && cd demo && pytest
  sudo "$(command -v python)" -m demo            run it
  pip wheel --no-deps .                          the object is inside
"""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


class NewOptions(NamedTuple):
    """The project to begin.

    Attributes:
        name: of the folder, the package and the object.
    """

    name: str


def parse(argv: Sequence[str]) -> NewOptions:
    """The options, or the end of the process with a usage message (status 2)."""
    return NewOptions(build_parser().parse_args(argv).name)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf new", _DESCRIPTION, _EXAMPLES, usage="NAME")
    command_parser.add_argument(
        "name", metavar="NAME", type=_package_name, help="of the folder and the Python package"
    )
    return command_parser


def _package_name(text: str) -> str:
    if not _NAME.fullmatch(text) or keyword.iskeyword(text) or text == "purebpf":
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a name for a package: expected lower-case letters, digits, _"
        )
    return text
