"""The common parts of the screens of top and summary: the terminal, the keys, the last minute."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable

from purebpf.cli.sheet import Choices, Sheet, State, draw, page_rows, press
from purebpf.cli.terminal import Terminal
from purebpf.cli.watch import watch
from purebpf.closable import Closing
from purebpf.measure.run import Ends

__all__ = ["TableScreen", "TablesBelow"]

_MINUTE_S = 60.0


class TablesBelow(Closing):
    """Tables below each other, without keys, where there is no screen."""

    def wait(self, wait: Callable[..., bool], ends: Ends) -> bool:
        """Wait as `wait` does."""
        return wait(*ends.sources)

    def close(self) -> None:
        """Nothing is to be undone."""


class TableScreen(Closing, ABC):
    """A table as the user wants it, on a screen with keys.

    Args:
        state: the first state.
        choices: the alternatives of the keys.
        interval_s: between two tables.
        with_keys: whether keys are read.
    """

    def __init__(
        self, state: State, choices: Choices, interval_s: float, *, with_keys: bool
    ) -> None:
        self._state, self._choices = state, choices
        self._heat: deque[float] = deque(maxlen=max(1, int(_MINUTE_S / interval_s)))
        self._is_ascii = not (sys.stdout.encoding or "").lower().startswith("utf")
        self._with_keys = with_keys
        self._terminal = Terminal(with_keys=with_keys)
        self.redraw()

    @abstractmethod
    def _sheet(self) -> Sheet:
        """The table, by the present state."""

    def wait(self, wait: Callable[..., bool], ends: Ends) -> bool:
        """Wait as `wait` does, and obey the keys."""
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
        self._state = press(self._state, key, self._choices, self._sheet().rows, page)
        return self._state.is_over
