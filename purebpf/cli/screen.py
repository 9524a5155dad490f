"""Tables on a terminal, each in place of the one before it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

__all__ = ["in_place"]

_HOME_AND_CLEAR = "\x1b[H\x1b[2J"


def in_place(pieces: Iterable[str], *, whole: bool = False) -> list[str]:
    """What clears the terminal that standard output is, and shows the text on it.

    Lines are cut to the terminal's width, and are one less than it has; not with `whole`, nor
    where the terminal does not know its size.
    """
    if whole:
        return [_HOME_AND_CLEAR, *pieces]
    columns, lines = os.get_terminal_size(sys.stdout.fileno())
    shown = "".join(pieces).expandtabs().splitlines()[: max(lines - 1, 0) or None]
    return [_HOME_AND_CLEAR, *(f"{line[: columns or None]}\n" for line in shown)]
