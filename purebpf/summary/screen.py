"""Where tables go, one after the other: in place on a terminal, else below each other."""

from __future__ import annotations

import sys
import time

from purebpf.cli.output import Output
from purebpf.cli.screen import in_place
from purebpf.summary.options import View
from purebpf.summary.render import csv_header, render
from purebpf.summary.table import Table

__all__ = ["Screen"]


class Screen:
    """The output of a run; the CSV header is written before anything else.

    With an interval, text tables have a clock above them. On a terminal each covers the last one,
    cut to the terminal's size; the one at the end is whole.
    """

    def __init__(self, output: Output, view: View) -> None:
        self._output = output
        self._view = view
        self._is_text = view.format == "text"
        self._is_live = (
            self._is_text
            and view.interval_s is not None
            and output.is_stdout
            and sys.stdout.isatty()
        )
        if view.format == "csv":
            output.write([csv_header()])

    def show(self, table: Table, *, last: bool = False) -> None:
        """Write a table."""
        pieces = render(table, self._view)
        if self._is_text and self._view.interval_s is not None:
            pieces = [time.strftime("[%H:%M:%S]"), *pieces]
        self._output.write(in_place(pieces, whole=last) if self._is_live else pieces)
