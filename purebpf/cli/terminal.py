"""The terminal as a screen with keys; as it was before, however the run ends.

Ctrl-C, SIGTERM and SIGHUP end a run by `purebpf.measure.stop`, errors by the end of the context;
Ctrl-Z gives the terminal back until the command goes on. Only SIGKILL leaves it as it is
(`stty sane` and `tput rmcup` help then).
"""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any

from purebpf.cli.keys import decode
from purebpf.closable import Closing

__all__ = ["Terminal", "can_draw", "has_keys"]

_ENTER = "\x1b[?1049h\x1b[?25l"
"""The alternate screen, without a cursor (xterm's ctlseqs)."""
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME, _END_OF_LINE, _REST, _PLAIN = "\x1b[H", "\x1b[K", "\x1b[J", "\x1b[m"
_LOCAL_FLAGS, _CHARACTERS = 3, 6
"""Places in what tcgetattr(3) returns."""
_READ = 1024
_COLOURS = {
    "bold": "1",
    "dim": "2",
    "selected": "7",
    "warm": "33",
    "hot": "1;31",
    "heat1": "34",
    "heat2": "36",
    "heat3": "32",
    "heat4": "33",
    "heat5": "31",
}
_WITHOUT_COLOURS = frozenset(("bold", "dim", "selected"))
"""What is left with NO_COLOR (no-color.org)."""


def can_draw() -> bool:
    """Return True if standard output is a terminal with an alternate screen."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def has_keys() -> bool:
    """Return True if standard input is this terminal, and ours to read: a background job's is
    not.
    """
    stream = sys.stdin
    try:
        return stream.isatty() and os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except (AttributeError, ValueError, OSError):  # closed, or another session's terminal
        return False


class Terminal(Closing):
    """An alternate screen, and the keys where `with_keys`.

    Use it in the main thread, inside of `Stop`, which a signal wakes.
    """

    def __init__(self, *, with_keys: bool) -> None:
        self._out = sys.stdout.fileno()
        self._in = sys.stdin.fileno() if with_keys else -1
        self._before: list[Any] = termios.tcgetattr(self._in) if with_keys else []
        self._colours = set(_COLOURS) if not os.environ.get("NO_COLOR") else _WITHOUT_COLOURS
        self._handlers = {
            number: signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGWINCH)
        }
        self._is_open = True
        signal.signal(signal.SIGTSTP, self._suspend)
        signal.signal(signal.SIGWINCH, _wake)
        self._enter()

    def fileno(self) -> int:
        """Readable when a key was pressed. Only with keys."""
        return self._in

    def read(self) -> list[str] | None:
        """The keys since the last time; None once the terminal has gone."""
        try:
            data = os.read(self._in, _READ)
        except OSError:
            return None
        return decode(data) if data else None

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, now; 80 and 24 where the terminal does not know."""
        try:
            columns, lines = os.get_terminal_size(self._out)
        except OSError:
            return 80, 24
        return columns or 80, lines or 24

    def draw(self, lines: Iterable[Sequence[tuple[str, str]]]) -> None:
        """Draw lines, each of (text, style), over the present content."""
        shown = [
            "".join(self._styled(text, style) for text, style in line) + _END_OF_LINE
            for line in lines
        ]
        self._write(_HOME + "\r\n".join(shown) + _REST)

    def close(self) -> None:
        """Give the terminal back; again is harmless."""
        if not self._is_open:
            return
        self._is_open = False
        self._leave()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _styled(self, text: str, style: str) -> str:
        if style not in self._colours:
            return text
        return f"\x1b[{_COLOURS[style]}m{text}{_PLAIN}"

    def _enter(self) -> None:
        if self._before:
            raw = termios.tcgetattr(self._in)
            raw[_LOCAL_FLAGS] &= ~(termios.ICANON | termios.ECHO)
            raw[_CHARACTERS][termios.VQUIT] = b"\0"  # Ctrl-\ would leave the screen as it is
            raw[_CHARACTERS][termios.VMIN] = 1
            raw[_CHARACTERS][termios.VTIME] = 0
            termios.tcsetattr(self._in, termios.TCSADRAIN, raw)
        self._write(_ENTER)

    def _leave(self) -> None:
        self._write(_LEAVE)
        if self._before:
            try:
                termios.tcsetattr(self._in, termios.TCSADRAIN, self._before)
            except termios.error:  # it has gone
                return

    def _suspend(self, number: int, _frame: FrameType | None) -> None:
        """Stop as a command without a screen does, and take the screen again afterwards."""
        self._leave()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # goes on from here after SIGCONT
        signal.signal(number, self._suspend)
        self._enter()

    def _write(self, text: str) -> None:
        data = text.encode(sys.stdout.encoding or "utf-8", "replace")
        try:
            sys.stdout.flush()
            while data:
                data = data[os.write(self._out, data) :]
        except OSError:  # a terminal that has gone: SIGHUP ends the run
            return


def _wake(_number: int, _frame: FrameType | None) -> None:
    """Nothing: the signal's number in the pipe of `Stop` ends the sleep."""
