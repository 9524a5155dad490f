"""Keys that choose what top measures, and screens that cannot be had."""

from __future__ import annotations

from typing import Self

import pytest

from purebpf.cli.sheet import Column, Line
from purebpf.cli.table_screen import TableScreen
from purebpf.errors import NotSupportedError
from purebpf.measure.stop import HasFileno
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.top import measuring
from purebpf.tools.top.measuring import Measuring
from purebpf.tools.top.options import View, parse
from purebpf.tools.top.screen import Screen as Shown
from purebpf.tools.top.screens import SCREENS
from purebpf.tools.top.screens.base import Reading, Screen


class Silent(Screen):
    columns = (Column("calls", 8),)
    heat_unit = "calls/s"
    reloads = True

    def __init__(self, log: list[str], name: str, by: str) -> None:
        super().__init__()
        self._log, self._name = log, f"{name} by {by}"

    def __enter__(self) -> Self:
        if "locks" in self._name:
            raise NotSupportedError("purebpf lock", "this kernel has no tracepoint")
        self._log.append(f"+{self._name}")
        return self

    def wait(self, *_: HasFileno, at_most_s: float) -> bool:
        return at_most_s < 0

    def read(self) -> Reading:
        return Reading(self._name, 1.0, lambda *_: [], lambda *_: [])

    def stop(self) -> Reading:
        return self.read()

    def close(self) -> None:
        self._log.append(f"-{self._name}")


class Pressed:
    """A screen without a terminal."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[str] = []
        monkeypatch.setattr(
            measuring, "load", lambda name, _options, by, *_: Silent(self.log, name, by)
        )
        monkeypatch.setattr(TableScreen, "redraw", lambda _: None)
        self._measuring = Measuring(ProfileOptions(), "cpu", "function", 1.0)
        self._measuring.__enter__()
        self.shown = Shown(View(by="function", sort="self"), self._measuring, with_keys=False)

    def press(self, *keys: str) -> None:
        for key in keys:
            assert not self.shown._press(key)
        self.shown.follow()

    @property
    def title(self) -> str:
        return self.shown._sheet().title


def test_a_digit_and_tab_measure_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    pressed = Pressed(monkeypatch)
    pressed.press("2")
    pressed.press("b")
    pressed.press("5")
    pressed.press("tab")
    pressed.press("tab")
    assert [entry for entry in pressed.log if entry[0] == "+"] == [
        "+cpu by function",
        "+syscalls by syscall",
        "+syscalls by process",
        "+runqueue by process",
        "+kwork by function",
        "+cpu by function",
    ]
    assert pressed.log[-1] == "-kwork by function"


def test_only_one_screen_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    pressed = Pressed(monkeypatch)
    for key in "245612":
        pressed.press(key)
    opened = [entry[1:] for entry in pressed.log if entry[0] == "+"]
    closed = [entry[1:] for entry in pressed.log if entry[0] == "-"]
    assert opened[:-1] == closed


def test_a_screen_that_cannot_be_had_says_why_and_the_old_one_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pressed = Pressed(monkeypatch)
    pressed.press("3")
    assert "this kernel has no tracepoint" in pressed.title
    assert pressed.shown._sheet().tab == "cpu"
    assert pressed.log == ["+cpu by function"]
    pressed.press("j")
    assert pressed.title == "measuring ..."


def test_digits_of_a_filter_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    pressed = Pressed(monkeypatch)
    pressed.press("/", "2")
    assert pressed.log == ["+cpu by function"]


@pytest.mark.parametrize("name", SCREENS)
def test_kinds_and_columns_of_a_screen_can_be_asked_for(name: str) -> None:
    kind = SCREENS[name]
    for by in kind.bys:
        assert parse(["--screen", name, "--by", by])[1].by == by
    for sort in kind.sorts:
        assert parse(["--screen", name, "--sort", sort])[1].sort == sort
    _, view = parse(["--screen", name])
    assert (view.by, view.sort) == (kind.bys[0], kind.sorts[0])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--screen syscalls --by module", "--screen syscalls has no --by module: syscall"),
        ("--sort calls", "--screen cpu has no --sort calls: self, total"),
        ("--screen kwork -p 1", "is of the whole machine"),
    ],
)
def test_what_a_screen_does_not_have_is_a_mistake(
    words: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(words.split())
    assert why in capsys.readouterr().err


def test_the_list_of_screens_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    from purebpf.cli.sheet import draw

    pressed = Pressed(monkeypatch)
    tabs: Line = draw(pressed.shown._state, pressed.shown._sheet(), 80, 24)[0]
    text = "".join(cell for cell, _ in tabs).rstrip()
    assert text == "1 cpu  2 syscalls  3 locks  4 offcpu  5 runqueue  6 kwork"
    assert ("1 cpu", "selected") in tabs
