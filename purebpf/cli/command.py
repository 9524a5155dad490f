"""How a command of purebpf ends: with a status, and at worst with one paragraph."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from purebpf.errors import PurebpfError

__all__ = ["FAILED", "LOSS", "note", "run", "say"]

FAILED = 1
"""Something that this machine or the user must change; standard error says what."""

LOSS = 3
"""`--strict`, and the result is incomplete. (2 is a usage error, argparse's.)"""

INTERRUPTED = 130
_WIDTH = 80


def run(name: str, body: Callable[[], int]) -> int:
    """Run a command and return its exit status.

    An error of purebpf is printed as a paragraph; its `exit_status`, where it has one, is the
    command's. A second Ctrl-C quits in silence. Any other exception is a bug, and keeps its
    traceback.
    """
    try:
        return body()
    except KeyboardInterrupt:
        return INTERRUPTED
    except PurebpfError as error:
        note(f"{name}: {error}")
        return int(getattr(error, "exit_status", FAILED))


def note(text: str, *, indent: str = "") -> None:
    """Print a paragraph on standard error, wrapped."""
    import textwrap  # 2 ms that --help need not pay

    say(
        textwrap.fill(
            text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    )


def say(line: str) -> None:
    """Print a line on standard error as it is; that nobody reads it is no error."""
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, sys.stderr.fileno())
        os.close(nowhere)
