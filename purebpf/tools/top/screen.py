"""The output of tables: a screen with keys on a terminal, else text, one below the other."""

from __future__ import annotations

from purebpf.cli.output import Output
from purebpf.cli.sheet import Choices, Sheet, State, arrange
from purebpf.cli.table_screen import TablesBelow, TableScreen
from purebpf.cli.terminal import can_draw, has_keys
from purebpf.tools.top.measuring import Measuring
from purebpf.tools.top.options import View
from purebpf.tools.top.screens import SCREENS
from purebpf.tools.top.screens.base import Reading

__all__ = ["Screen", "TopText", "screen"]

_NAMES = tuple(SCREENS)


def screen(
    output: Output, view: View, measuring: Measuring, *, has_command: bool
) -> Screen | TopText:
    """Return the output that standard output supports. A running command has the keys for
    itself.
    """
    if not can_draw():
        return TopText(output, view)
    return Screen(view, measuring, with_keys=has_keys() and not has_command)


class TopText(TablesBelow):
    """Tables below each other; the format of record."""

    def __init__(self, output: Output, view: View) -> None:
        self._output, self._view = output, view
        self.by, self.sort = view.by, view.sort

    def show(self, reading: Reading, clock: str) -> None:
        """Write a table, and an empty line."""
        self._output.write([*reading.text(clock, self.by, self.sort, self._view.lines), "\n"])

    def follow(self) -> None:
        """Nothing: there are no keys."""


class Screen(TableScreen):
    """The last table, as the user wants it; the screen of before comes back at the end."""

    def __init__(self, view: View, measuring: Measuring, *, with_keys: bool) -> None:
        self._measuring = measuring
        self._reading: Reading | None = None
        self._name = self._wanted = view.screen
        self._loaded_by = view.by
        self._clock = self._problem = ""
        super().__init__(
            State(view.by, view.sort), self._choose(), view.interval_s, with_keys=with_keys
        )

    @property
    def by(self) -> str:
        """The kind of the rows of the outermost view."""
        return self._loaded_by

    @property
    def sort(self) -> str:
        """The column that they are sorted by."""
        return self._state.sort

    def _choose(self) -> Choices:
        kind = SCREENS[self._name]
        return Choices(kind.bys, kind.sorts, self._measuring.current.deeper)

    def show(self, reading: Reading, clock: str) -> None:
        """Show the reading since the last time."""
        self._heat.append(reading.heat)
        if not self._state.is_paused or self._reading is None:
            self._reading, self._clock = reading, clock
        self.redraw()

    def follow(self) -> None:
        """Measure the screen and rows that the keys chose."""
        state = self._state
        by = state.path[0].kind if state.path else state.by
        if self._wanted != self._name:
            self._switch(SCREENS[self._wanted].bys[0], SCREENS[self._wanted].sorts[0])
        elif by != self._loaded_by and self._measuring.current.reloads:
            self._switch(by, state.sort)
        self._loaded_by = by

    def _switch(self, by: str, sort: str) -> None:
        self._problem = self._measuring.switch(self._wanted, by)
        if self._problem:
            self._wanted = self._name
        else:
            if self._wanted != self._name:
                self._name = self._wanted
                self._choices = self._choose()
                self._heat.clear()
            self._reading = None
            self._state = State(by, sort)
        self.redraw()

    def _press(self, key: str) -> bool:
        if self._state.typed is None:
            if key == "tab":
                self._wanted = _NAMES[(_NAMES.index(self._name) + 1) % len(_NAMES)]
                return False
            if key.isdecimal() and 1 <= int(key) <= len(_NAMES):
                self._wanted = _NAMES[int(key) - 1]
                return False
        self._problem = ""
        return super()._press(key)

    def _sheet(self) -> Sheet:
        state, reading, current = self._state, self._reading, self._measuring.current
        title = "measuring ..."
        rows = []
        if reading is not None:
            rows = arrange(state, current.columns, reading.rows(state.by, state.path))
            title = f"{self._clock}  {reading.summary}"
        return Sheet(
            self._problem or title,
            current.columns,
            rows,
            tuple(self._heat),
            current.heat_unit,
            self._is_ascii,
            _NAMES,
            self._name,
        )
