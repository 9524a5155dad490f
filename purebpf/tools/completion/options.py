"""The command line of `purebpf completion`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.tuples import NamedTuple

__all__ = ["SHELLS", "CompletionOptions", "build_parser", "parse"]

SHELLS = ("bash", "zsh", "fish")

_DESCRIPTION = """\
Print a script that completes `purebpf`, its commands and their options in a
shell. It fits the options of this version: print it again after an update."""

_EPILOG = """\
examples:
  eval "$(purebpf completion bash)"                        in ~/.bashrc
  purebpf completion bash > /etc/bash_completion.d/purebpf
  purebpf completion zsh > ~/.zfunc/_purebpf               a folder of $fpath
  purebpf completion fish > ~/.config/fish/completions/purebpf.fish

exit status: 0; 1 an error; 2 a wrong option."""


class CompletionOptions(NamedTuple):
    """For which shell: one of `SHELLS`."""

    shell: str


def parse(argv: Sequence[str]) -> CompletionOptions:
    """Options from the command line; exits with status 2 and a usage line when they are wrong."""
    return CompletionOptions(**vars(build_parser().parse_args(argv)))


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf completion", _DESCRIPTION, _EPILOG, usage="bash|zsh|fish")
    command_parser.add_argument("shell", choices=SHELLS, help="the shell that reads the script")
    return command_parser
