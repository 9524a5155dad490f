"""The tables on a terminal, each over the one before it: with rich where that is installed."""

from __future__ import annotations

import sys

from purebpf.cli.output import Output
from purebpf.cli.screen import in_place
from purebpf.closable import Closing
from purebpf.results import Profile
from purebpf.results.model.spelling import printable
from purebpf.top.render import percent, rank_lines, render

__all__ = ["screen"]

_HEAD = 4
"""Lines of the terminal that are not rows of the table."""

_WARM_PERCENT, _HOT_PERCENT = 2, 10


def screen(output: Output, *, by: str, lines: int) -> _Plain | _Rich:
    """What standard output can do: a terminal with rich, one without, or no terminal."""
    if not sys.stdout.isatty():
        return _Plain(output, by, lines, is_live=False)
    try:
        import rich.live  # noqa: F401 - whether it is there
    except ImportError:
        return _Plain(output, by, lines, is_live=True)
    return _Rich(by, lines)


class _Plain(Closing):
    """Text; the format of record."""

    def __init__(self, output: Output, by: str, lines: int, *, is_live: bool) -> None:
        self._output, self._by, self._lines, self._is_live = output, by, lines, is_live

    def show(self, profile: Profile, heading: str) -> None:
        """Below the last one, or over it on a terminal."""
        lines = list(render(profile, by=self._by, lines=self._lines, heading=heading))
        self._output.write(in_place(lines) if self._is_live else [*lines, "\n"])

    def close(self) -> None:
        """Nothing is to be undone."""


class _Rich(Closing):
    """Colours, and the whole width; the screen of before comes back at the end."""

    def __init__(self, by: str, lines: int) -> None:
        from rich.console import Console
        from rich.live import Live

        self._by, self._lines = by, lines
        self._console = Console()
        self._live = Live(console=self._console, screen=True, auto_refresh=False)
        self._live.start()

    def show(self, profile: Profile, heading: str) -> None:
        """As wide and as high as the terminal is now."""
        from rich.table import Table
        from rich.text import Text

        rows = rank_lines(profile, self._by)
        room = max(1, min(self._lines, self._console.height - _HEAD))
        title = f"{heading}: {profile.total} {profile.unit}"
        more = f"and {len(rows) - room} more" if len(rows) > room else None
        table = Table(
            title=title, caption=more, title_justify="left", box=None, expand=True, pad_edge=False
        )
        for name in ("self", "total", profile.unit):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column(self._by, no_wrap=True, overflow="ellipsis", ratio=1)
        whole = profile.total
        for name, own, total in rows[:room]:
            cells = (percent(own, whole), percent(total, whole), str(own), printable(name))
            style = _style(100 * own / whole if whole else 0)
            table.add_row(*map(Text, cells), style=style)
        self._live.update(table, refresh=True)

    def close(self) -> None:
        """Give the terminal back; again is harmless."""
        self._live.stop()


def _style(share: float) -> str:
    if share >= _HOT_PERCENT:
        return "bold red"
    return "yellow" if share >= _WARM_PERCENT else ""
