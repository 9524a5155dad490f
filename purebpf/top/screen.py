"""Where the tables go: a screen with keys on a terminal, else text, one below the other."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable

from purebpf.cli.output import Output
from purebpf.cli.sheet import Sheet, State, arrange, draw, page_rows, press
from purebpf.cli.terminal import Terminal, can_draw, has_keys
from purebpf.cli.watch import watch
from purebpf.closable import Closing
from purebpf.measure.run import Ends
from purebpf.results import Profile
from purebpf.top.options import View
from purebpf.top.render import render
from purebpf.top.rows import CHOICES, COLUMNS, rows

__all__ = ["Screen", "Text", "screen"]

_MINUTE_S = 60.0


def screen(output: Output, view: View, *, has_command: bool) -> Screen | Text:
    """What standard output can do. A command that runs has the keys for itself."""
    if not can_draw():
        return Text(output, view)
    return Screen(view, with_keys=has_keys() and not has_command)


class Text(Closing):
    """Tables below each other; the format of record."""

    def __init__(self, output: Output, view: View) -> None:
        self._output, self._view = output, view

    def show(self, profile: Profile, clock: str, _cpus: float) -> None:
        """Write a table, and an empty line."""
        view = self._view
        text = render(profile, by=view.by, lines=view.lines, heading=clock, sort=view.sort)
        self._output.write([*text, "\n"])

    def wait(self, wait: Callable[..., bool], ends: Ends) -> bool:
        """Wait as `wait` does."""
        return wait(*ends.sources)

    def close(self) -> None:
        """Nothing is to be undone."""


class Screen(Closing):
    """The last table, as the user wants it; the screen of before comes back at the end."""

    def __init__(self, view: View, *, with_keys: bool) -> None:
        self._state = State(view.by, view.sort)
        self._profile = Profile()
        self._clock, self._cpus = "", 0.0
        self._heat: deque[float] = deque(maxlen=max(1, int(_MINUTE_S / view.interval_s)))
        self._is_ascii = not (sys.stdout.encoding or "").lower().startswith("utf")
        self._with_keys = with_keys
        self._terminal = Terminal(with_keys=with_keys)
        self.redraw()

    def show(self, profile: Profile, clock: str, cpus: float) -> None:
        """Show what was sampled since the last time; `cpus` is how many CPUs a sample is."""
        self._heat.append(profile.total * cpus)
        if not self._state.is_paused:
            self._profile, self._clock, self._cpus = profile, clock, cpus
        self.redraw()

    def wait(self, wait: Callable[..., bool], ends: Ends) -> bool:
        """Wait as `wait` does, and do what the keys say."""
        key = self._press if self._with_keys else None
        return watch(wait, ends, self._terminal, press=key, redraw=self.redraw)

    def redraw(self) -> None:
        """As wide and as high as the terminal is now."""
        self._terminal.draw(draw(self._state, self._sheet(), *self._terminal.size))

    def close(self) -> None:
        """Give the terminal back; again is harmless."""
        self._terminal.close()

    def _press(self, key: str) -> bool:
        page = page_rows(self._terminal.size[1])
        self._state = press(self._state, key, CHOICES, self._sheet().rows, page)
        return self._state.is_over

    def _sheet(self) -> Sheet:
        state, profile = self._state, self._profile
        every_row = rows(profile, state.by, state.path, self._cpus)
        in_all = f"{profile.total} {profile.unit}, {profile.total * self._cpus:.2f} CPUs"
        title = f"{self._clock}  {in_all}" if self._clock else "sampling ..."
        shown = arrange(state, COLUMNS, every_row)
        return Sheet(title, COLUMNS, shown, tuple(self._heat), "CPUs", self._is_ascii)
