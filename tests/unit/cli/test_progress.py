"""What takes long is said on a terminal, and only there."""

from __future__ import annotations

import io
import sys
import time

import pytest

from purebpf.cli import command, progress


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


def test_what_takes_long_is_said_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_PATIENCE_S", 0)
    with progress.doing("naming"):
        while not terminal.getvalue():
            time.sleep(0.001)
        assert terminal.getvalue() == "naming ..."
    assert terminal.getvalue() == "naming ...\r\x1b[K"


def test_what_is_quick_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
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
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_PATIENCE_S", 0)

    def wrong() -> None:
        while not terminal.getvalue():
            time.sleep(0.001)
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"), progress.doing("naming"):
        wrong()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_remark_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_PATIENCE_S", 0)
    with progress.doing("naming"):
        while not terminal.getvalue():
            time.sleep(0.001)
        command.say("No names for 3 frames.")
    assert terminal.getvalue() == "naming ...\r\x1b[KNo names for 3 frames.\n"
