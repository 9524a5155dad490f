"""The output of tables, one after the other: on a screen with keys, else below each other."""

from __future__ import annotations

import time
from collections.abc import Iterable

from purebpf.cli.output import Output
from purebpf.cli.sheet import Sheet, State, arrange
from purebpf.cli.table_screen import TablesBelow, TableScreen
from purebpf.cli.terminal import can_draw, has_keys
from purebpf.tools.summary.options import View
from purebpf.tools.summary.render import csv_header, render
from purebpf.tools.summary.rows import CHOICES, COLUMNS, rows
from purebpf.tools.summary.table import Table

__all__ = ["Screen", "SummaryText", "screen"]


def screen(output: Output, view: View, mode: str, *, has_command: bool) -> Screen | SummaryText:
    """Return the output that standard output supports. A running command has the keys for
    itself.
    """
    live = view.format == "text" and view.interval_s is not None and output.is_stdout
    if not (live and can_draw()):
        return SummaryText(output, view)
    return Screen(output, view, mode, with_keys=has_keys() and not has_command)


class SummaryText(TablesBelow):
    """Tables below each other; the CSV header is written before anything else.

    With an interval, text tables have a clock above them.
    """

    def __init__(self, output: Output, view: View) -> None:
        self._output, self._view = output, view
        if view.format == "csv":
            output.write([csv_header()])

    def show(self, table: Table) -> None:
        """Write a table."""
        self._output.write(_with_clock(table, self._view))

    show_last = show

    def mode_wanted(self) -> str:
        """A mode that the user chose; "" for the present one."""
        return ""


class Screen(TableScreen):
    """The last table, as the user wants it; the one at the end is whole, on the screen of before.

    A mode is chosen when the programs are loaded: another one is `mode_wanted` (see
    `purebpf.tools.summary.__main__`).
    """

    def __init__(self, output: Output, view: View, mode: str, *, with_keys: bool) -> None:
        assert view.interval_s is not None
        self._output, self._view = output, view
        sort = view.sort if view.sort in CHOICES.sorts else "total"
        self._mode, self._clock = mode, ""
        self._table: Table | None = None
        super().__init__(State(mode, sort), CHOICES, view.interval_s, with_keys=with_keys)

    def show(self, table: Table) -> None:
        """Show the calls that returned since the last time."""
        self._heat.append(_calls(table) * 1e9 / (table.duration_ns or 1))
        if not self._state.is_paused or self._table is None or self._table.mode != table.mode:
            self._table, self._clock = table, time.strftime("%H:%M:%S")
        self.redraw()

    def show_last(self, table: Table) -> None:
        """Write the table at the end, whole, on the screen of before."""
        self.close()
        self._output.write(_with_clock(table, self._view))

    def mode_wanted(self) -> str:
        """A mode that the user chose; "" for the present one."""
        state = self._state
        mode = state.path[0].kind if state.path else state.by
        if mode == self._mode:
            return ""
        self._mode = mode
        return mode

    def _sheet(self) -> Sheet:
        state, table = self._state, self._table
        if table is None or table.mode != (state.path[0].kind if state.path else state.by):
            return Sheet("counting ...", COLUMNS, (), tuple(self._heat), "calls/s", self._is_ascii)
        title = f"{self._clock}  {_calls(table)} calls"
        arranged = arrange(state, COLUMNS, rows(table, state.path))
        return Sheet(title, COLUMNS, arranged, tuple(self._heat), "calls/s", self._is_ascii)


def _calls(table: Table) -> int:
    return sum(group.calls for group in table.groups)


def _with_clock(table: Table, view: View) -> Iterable[str]:
    pieces = render(table, view)
    if view.format == "text" and view.interval_s is not None:
        return [time.strftime("[%H:%M:%S]"), *pieces]
    return pieces
