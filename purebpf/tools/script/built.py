"""`run_built`: the command line of a file that `--build` has made."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from purebpf.script import tree
from purebpf.script.parser import parse
from purebpf.tools.script.__main__ import run_text

__all__ = ["describe", "run_built"]


def run_built(name: str, text: str, argv: Sequence[str]) -> int:
    """Run the script of a built file, and return its exit status.

    Options and parameters are the script's. Before a `--` there are options of `purebpf script`.
    """
    arguments = list(argv)
    if arguments[:1] in (["-h"], ["--help"]):
        sys.stdout.write(describe(name, text))
        return 0
    if "--" not in arguments:
        arguments = ["--", *arguments]
    return run_text(name, text, arguments)


def describe(name: str, text: str) -> str:
    """Return the usage of a script: its options are the calls of getopt()."""
    lines = [
        f"usage: {name} [--OPTION=VALUE ...] [PARAMETER ...]",
        f"       {name} [options of purebpf script] -- [--OPTION=VALUE ...] [PARAMETER ...]",
    ]
    options = {}
    for node in tree.walk(parse(text)):
        if isinstance(node, tree.Call) and node.name == "getopt":
            words = [text[item.start : item.end].strip('"') for item in node.arguments]
            label = f"--{words[0]}" if len(words) == 1 else f"--{words[0]}={words[1]}"
            if len(words) == 3 or words[0] not in options:
                options[words[0]] = f"  {label:<24} {words[2] if len(words) == 3 else ''}".rstrip()
    if options:
        lines += ["", "options:", *options.values()]
    return "\n".join((*lines, ""))
