"""The options that off-CPU time and the wall clock share: targets and output."""

from __future__ import annotations

import argparse

from purebpf.cli import parser
from purebpf.cli.destination import add_answer, add_destinations, add_folded

__all__ = ["add_output", "add_whose"]


def add_whose(group: argparse._ArgumentGroup, *, cpus: str) -> None:
    """Targets, and which kinds of threads; `cpus` is the help of `--cpus`."""
    parser.add_targets(group, cpus=cpus)
    parser.add_thread_kinds(group)


def add_output(
    group: argparse._ArgumentGroup, *letters: str, details: str, what: str = "places and stacks"
) -> None:
    """Formats, files, and their contents; `details` ask for the layout of bcc.

    `letters` are more spellings of `--top`, which limits `what`.
    """
    add_folded(group)
    add_destinations(group)
    add_answer(group, *letters, other=details, what=what)
    parser.add_delimited(group)
    group.add_argument(
        *("-s", "--offset"), dest="offsets", action="store_true", help="offsets after names (text)"
    )
    parser.add_call_graph(group)
    parser.add_python(group)
    parser.add_async(group)
    parser.add_storage(group, "(thread, stacks, state)")
    parser.add_serve(group)
    parser.add_names(group)
    parser.add_strict(group)
