"""The terminal edge: what is written to a terminal, and how it is given back."""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress

import pytest

from purebpf.cli.terminal import Terminal, can_draw
from purebpf.cli.watch import watch
from purebpf.measure import wait
from purebpf.measure.run import Ends
from purebpf.measure.stop import Stop

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
FLAGS = 3


class Pty:
    """A pseudo-terminal that is standard input and output."""

    def __init__(self, leader: int, follower: int) -> None:
        self.leader, self.follower = leader, follower

    def text(self) -> str:
        os.set_blocking(self.leader, False)
        raw = b""
        try:
            while True:
                raw += os.read(self.leader, 65536)
        except BlockingIOError:
            return raw.decode()

    def type(self, keys: bytes) -> None:
        os.write(self.leader, keys)

    def modes(self) -> int:
        return int(termios.tcgetattr(self.follower)[FLAGS])


@contextmanager
def a_pty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pty]:
    """In the test itself: pytest's own standard output is not there before."""
    leader, follower = os.openpty()
    termios.tcsetwinsize(follower, (24, 80))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with (
        open(follower, "r+b", buffering=0) as raw,
        open(os.dup(follower), "w", encoding="utf-8") as stream,
        redirect_stdout(stream),
        monkeypatch.context() as patch,
    ):
        patch.setattr(sys, "stdin", raw)
        yield Pty(leader, follower)
    os.close(leader)


@contextmanager
def watching(pty: Pty) -> Iterator[tuple[Terminal, Ends]]:
    with Stop() as stop, Terminal(with_keys=True) as terminal:
        yield terminal, Ends(stop, None)


def test_a_terminal_is_given_back_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_pty(monkeypatch) as pty:
        before, handler = pty.modes(), signal.getsignal(signal.SIGTSTP)
        with suppress(ZeroDivisionError), Terminal(with_keys=True) as terminal:
            assert not pty.modes() & (termios.ICANON | termios.ECHO)
            assert pty.modes() & termios.ISIG
            terminal.draw([[("a", "hot"), ("b", "")]])
            raise ZeroDivisionError
        assert pty.text() == f"{ENTER}\x1b[H\x1b[1;31ma\x1b[mb\x1b[K\x1b[J{LEAVE}"
        assert pty.modes() == before
        assert signal.getsignal(signal.SIGTSTP) == handler
        terminal.close()
        assert pty.text() == ""


def test_without_colours_the_chosen_row_is_still_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_pty(monkeypatch) as pty:
        monkeypatch.setenv("NO_COLOR", "1")
        with Terminal(with_keys=False) as terminal:
            terminal.draw([[("a", "hot"), ("b", "selected")]])
        assert "\x1b[Ha\x1b[7mb\x1b[m" in pty.text()


def test_a_dumb_terminal_gets_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_pty(monkeypatch):
        assert can_draw()
        monkeypatch.setenv("TERM", "dumb")
        assert not can_draw()


def test_a_key_is_acted_on_and_the_wait_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_pty(monkeypatch) as pty:
        pressed: list[str] = []

        def press(key: str) -> bool:
            pressed.append(key)
            if len(pressed) == 1:
                pty.type(b"xq")
            return key == "q"

        drawn: list[int] = []
        with watching(pty) as (terminal, ends):
            pty.type(b"\x1b[A")
            is_over = watch(
                lambda *sources: wait.until(None, sources),
                ends, terminal, press=press, redraw=lambda: drawn.append(1),
            )  # fmt: skip
        assert is_over
        assert pressed == ["up", "x", "q"]
        assert drawn == [1]


def test_a_new_size_is_drawn_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_pty(monkeypatch) as pty:
        sizes: list[tuple[int, int]] = []
        with watching(pty) as (terminal, ends):
            termios.tcsetwinsize(pty.follower, (50, 140))
            os.kill(os.getpid(), signal.SIGWINCH)  # the kernel's goes to the foreground group

            def redraw() -> None:
                sizes.append(terminal.size)
                os.kill(os.getpid(), signal.SIGTERM)

            is_over = watch(
                lambda *sources: wait.until(None, sources),
                ends, terminal, press=lambda _: False, redraw=redraw,
            )  # fmt: skip
            assert ends.stop.signal == signal.SIGTERM
        assert is_over
        assert sizes == [(140, 50)]


def test_a_tick_is_a_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_pty(monkeypatch) as pty, watching(pty) as (terminal, ends):
        assert not watch(
            lambda *_: False, ends, terminal, press=lambda _: True, redraw=lambda: None
        )


def test_a_terminal_that_hangs_up_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_pty(monkeypatch) as pty:
        with watching(pty) as (terminal, ends):
            os.dup2(os.open(os.devnull, os.O_RDONLY), terminal.fileno())
            sources: list[int] = []

            def until_over(*given: object) -> bool:
                sources.append(len(given))
                return True

            assert watch(until_over, ends, terminal, press=lambda _: False, redraw=lambda: None)
        assert sources == [2]
