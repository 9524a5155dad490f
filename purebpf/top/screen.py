"""Where the tables go: a screen with keys on a terminal, else text, one below the other."""

from __future__ import annotations

from purebpf.cli.output import Output
from purebpf.cli.sheet import Sheet, State, arrange
from purebpf.cli.table_screen import TablesBelow, TableScreen
from purebpf.cli.terminal import can_draw, has_keys
from purebpf.results import Profile
from purebpf.top.options import View
from purebpf.top.render import render
from purebpf.top.rows import CHOICES, COLUMNS, rows

__all__ = ["Screen", "Text", "screen"]


def screen(output: Output, view: View, *, has_command: bool) -> Screen | Text:
    """What standard output can do. A command that runs has the keys for itself."""
    if not can_draw():
        return Text(output, view)
    return Screen(view, with_keys=has_keys() and not has_command)


class Text(TablesBelow):
    """Tables below each other; the format of record."""

    def __init__(self, output: Output, view: View) -> None:
        self._output, self._view = output, view

    def show(self, profile: Profile, clock: str, _cpus: float) -> None:
        """Write a table, and an empty line."""
        view = self._view
        text = render(profile, by=view.by, lines=view.lines, heading=clock, sort=view.sort)
        self._output.write([*text, "\n"])


class Screen(TableScreen):
    """The last table, as the user wants it; the screen of before comes back at the end."""

    def __init__(self, view: View, *, with_keys: bool) -> None:
        self._profile = Profile()
        self._clock, self._cpus = "", 0.0
        state = State(view.by, view.sort)
        super().__init__(state, CHOICES, view.interval_s, with_keys=with_keys)

    def show(self, profile: Profile, clock: str, cpus: float) -> None:
        """Show what was sampled since the last time; `cpus` is how many CPUs a sample is."""
        self._heat.append(profile.total * cpus)
        if not self._state.is_paused:
            self._profile, self._clock, self._cpus = profile, clock, cpus
        self.redraw()

    def _sheet(self) -> Sheet:
        state, profile = self._state, self._profile
        every_row = rows(profile, state.by, state.path, self._cpus)
        in_all = f"{profile.total} {profile.unit}, {profile.total * self._cpus:.2f} CPUs"
        title = f"{self._clock}  {in_all}" if self._clock else "sampling ..."
        shown = arrange(state, COLUMNS, every_row)
        return Sheet(title, COLUMNS, shown, tuple(self._heat), "CPUs", self._is_ascii)
