"""The seconds left are shown on a terminal, and only there."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time

import pytest

from purebpf.cli import command, countdown, progress
from purebpf.cli.countdown import counting_down
from purebpf.cli.output import Output

CLEAR_LINE = "\r\x1b[K"


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + 10
        while text not in self.getvalue():
            assert time.monotonic() < deadline, self.getvalue()
            time.sleep(0.001)


def reader(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal, and seconds that pass quickly."""
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    monkeypatch.setattr(countdown, "_EVERY_S", 0.001)
    return stream


def test_the_seconds_left_are_shown_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = reader(monkeypatch)
    with counting_down(3600):
        terminal.wait_for("3600 s left (Ctrl-C: end now)")
    assert terminal.getvalue().endswith(CLEAR_LINE)


def test_a_line_replaces_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = reader(monkeypatch)
    counts = iter(range(1000))
    with counting_down(3600, seen=lambda: f"{next(counts)} events"):
        terminal.wait_for("s left, 2 events")
    lines = terminal.getvalue().split(CLEAR_LINE)
    assert "\n" not in terminal.getvalue()
    assert lines[1] == "3600 s left, 1 events (Ctrl-C: end now)"


@pytest.mark.parametrize(
    ("duration_s", "words"),
    [(None, ()), (1.5, ()), (3600, ("make",))],
    ids=["no known end", "over at once", "a command has the terminal"],
)
def test_nothing_is_shown(
    monkeypatch: pytest.MonkeyPatch, duration_s: float | None, words: tuple[str, ...]
) -> None:
    terminal = reader(monkeypatch)
    before = threading.active_count()
    with counting_down(duration_s, words):
        assert threading.active_count() == before
    assert terminal.getvalue() == ""


def test_a_file_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    before = threading.active_count()
    with counting_down(3600):
        assert threading.active_count() == before
    assert log.getvalue() == ""


def test_a_result_and_a_remark_have_lines_of_their_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = reader(monkeypatch)
    progress.show_line(terminal, "9 s left")
    with Output() as output:
        output.write(["a row\n"])
    assert terminal.getvalue() == f"9 s left{CLEAR_LINE}"
    assert capsys.readouterr().out == "a row\n"
    progress.show_line(terminal, "8 s left")
    command.say("a remark")
    assert terminal.getvalue().endswith(f"8 s left{CLEAR_LINE}a remark\n")


def test_the_end_of_a_run_is_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = reader(monkeypatch)
    monkeypatch.setattr(countdown, "_EVERY_S", 3600)
    before = threading.active_count()  # a plugin of pytest may have one of its own
    with counting_down(7200):
        pass
    assert terminal.getvalue() == ""
    assert threading.active_count() == before


def test_signals_go_to_the_thread_that_waits_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = reader(monkeypatch)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    threads = threading.enumerate()
    with counting_down(3600):
        terminal.wait_for("s left")
        (counter,) = (one for one in threading.enumerate() if one not in threads)
        with open(f"/proc/self/task/{counter.native_id}/status", encoding="ascii") as status:
            masks = dict(line.split(":", 1) for line in status)
        assert int(masks["SigBlk"], 16) >> (signal.SIGINT - 1) & 1
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_process_in_the_background_leaves_the_terminal_alone() -> None:
    main, other = os.openpty()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        import fcntl
        import termios

        fcntl.ioctl(other, termios.TIOCSCTTY, 0)
        if (child := os.fork()) == 0:
            os.setpgid(0, 0)  # as a shell does with `&`
            with os.fdopen(other, "w") as stream:
                progress.show_line(stream, "background")
            os._exit(0)
        os.waitpid(child, 0)
        with os.fdopen(other, "w") as stream:
            progress.show_line(stream, "foreground")
            os._exit(0)
    os.close(other)
    text = b""
    while b"foreground" not in text:
        text += os.read(main, 100)
    os.close(main)
    assert os.waitpid(pid, 0)[1] == 0
    assert text == b"foreground"
