"""Where tables go, one after the other: in place on a terminal, else below each other."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable

from purebpf.cli.output import Output
from purebpf.summary.options import Options
from purebpf.summary.render import csv_header, render
from purebpf.summary.table import Table

__all__ = ["Screen"]

_HOME_AND_CLEAR = "\x1b[H\x1b[2J"


class Screen:
    """The output of a run; the CSV header is written before anything else.

    With an interval, text tables have a clock above them. On a terminal each covers the last one,
    cut to the terminal's height; the one at the end is whole.
    """

    def __init__(self, output: Output, options: Options) -> None:
        self._output = output
        self._options = options
        self._is_text = options.format == "text"
        self._is_live = (
            self._is_text
            and options.interval_s is not None
            and output.is_stdout
            and sys.stdout.isatty()
        )
        if options.format == "csv":
            output.write([csv_header()])

    def show(self, table: Table, *, last: bool = False) -> None:
        """Write a table."""
        if self._is_text and self._options.interval_s is not None:
            clear = _HOME_AND_CLEAR if self._is_live else ""
            self._output.write([clear, time.strftime("[%H:%M:%S]")])
        pieces = render(table, self._options)
        self._output.write(self._cut(pieces) if self._is_live and not last else pieces)

    @staticmethod
    def _cut(pieces: Iterable[str]) -> list[str]:
        """What fits on the screen below the clock."""
        height = os.get_terminal_size(sys.stdout.fileno()).lines
        return "".join(pieces).splitlines(keepends=True)[: height - 1]
