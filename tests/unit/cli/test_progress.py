"""What takes long is said on a terminal, and only there."""

from __future__ import annotations

import io
import sys
import time

import pytest

from purebpf.cli import command, progress

CLEAR_LINE = "\r\x1b[K"


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True

    def wait(self) -> None:
        """Until something is said."""
        deadline = time.monotonic() + 10
        while not self.getvalue():
            assert time.monotonic() < deadline
            time.sleep(0.001)


def reader(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal, with a reader that does not wait."""
    monkeypatch.setattr(sys, "stderr", found := Terminal())
    monkeypatch.setattr(progress, "_PATIENCE_S", 0)
    return found


def test_what_takes_long_is_said_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = reader(monkeypatch)
    with progress.doing("naming"):
        terminal.wait()
        assert terminal.getvalue() == "naming ..."
    assert terminal.getvalue() == f"naming ...{CLEAR_LINE}"


def test_what_is_quick_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = reader(monkeypatch)
    monkeypatch.setattr(progress, "_PATIENCE_S", 10)
    with progress.doing("naming"):
        pass
    assert terminal.getvalue() == ""


def test_a_file_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    monkeypatch.setattr(progress, "_PATIENCE_S", 0)
    with progress.doing("naming"):
        time.sleep(0.01)
    assert log.getvalue() == ""


def test_an_error_takes_it_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = reader(monkeypatch)

    def wrong() -> None:
        terminal.wait()
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"), progress.doing("naming"):
        wrong()
    assert terminal.getvalue().endswith(CLEAR_LINE)


def test_a_remark_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = reader(monkeypatch)
    with progress.doing("naming"):
        terminal.wait()
        command.say("No names for 3 frames.")
    assert terminal.getvalue() == f"naming ...{CLEAR_LINE}No names for 3 frames.\n"
