"""Waits for the end of a run, for its ticks, and for events of the terminal."""

from __future__ import annotations

from collections.abc import Callable

from purebpf.cli.terminal import Terminal
from purebpf.measure.run import Ends
from purebpf.measure.stop import HasFileno

__all__ = ["watch"]


def watch(
    wait: Callable[..., bool],
    ends: Ends,
    terminal: Terminal,
    *,
    press: Callable[[str], bool] | None,
    redraw: Callable[[], object],
) -> bool:
    """Wait as `wait` does, and act on keys and on a new size of the terminal.

    Args:
        wait: waits for the given ends; returns True if the run is over, False for a tick.
        ends: of `purebpf.measure.run.prepare`.
        terminal: has the keys.
        press: takes a key; returns whether it ends the run. None: there are no keys.
        redraw: draws the changes.

    Returns:
        Whether the run is over; False when a tick is due.
    """
    sources: tuple[HasFileno, ...] = ends.sources
    if press is not None:
        sources = (*sources, terminal)
    while True:
        is_over = wait(*sources)
        woken = ends.stop.drop_others()
        if press is not None and _is_readable(terminal):
            keys = terminal.read()
            if keys is None or any(map(press, keys)):
                return True
            woken = True
        if woken:
            redraw()
        if not is_over or not woken:
            return is_over


def _is_readable(source: HasFileno) -> bool:
    import select

    poll = select.poll()
    poll.register(source.fileno(), select.POLLIN)
    return bool(poll.poll(0))
