"""A screen with a table: what keys do to it, and what it looks like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.cli.sheet import Choices, Column, Sheet, SheetRow, State, Step, arrange, draw, press
from purebpf.results.model.width import display_width

CHOICES = Choices(("function", "process"), ("self", "total"), {"process": "function"})
COLUMNS = (Column("self", 6), Column("total", 6))
ROWS = [
    SheetRow("b", "beta", (3, 9), ("3", "9"), 0.3),
    SheetRow("a", "Alpha", (5, 5), ("5", "5"), 0.5),
    SheetRow("g", "gamma", (1, 7), ("1", "7"), 0.01),
]
START = State("function", "self")
KEYS = (
    *("up", "down", "j", "k", "home", "end", "page up", "page down", "enter", "right", "left"),
    *("escape", "backspace", "b", "B", "s", "S", "r", "/", " ", "p", "h", "?", "redraw", "tab"),
    *("a", "z", "clear", "漢"),
)


def after(*keys: str, state: State = START) -> State:
    for key in keys:
        state = press(state, key, CHOICES, arrange(state, COLUMNS, ROWS), 2)
    return state


def names(state: State) -> list[str]:
    return [row.name for row in arrange(state, COLUMNS, ROWS)]


def screen(
    state: State, width: int = 80, height: int = 10, rows: list[SheetRow] = ROWS
) -> list[str]:
    sheet = Sheet("12:00:00  9 samples", COLUMNS, arrange(state, COLUMNS, rows), (1, 2, 4), "CPUs")
    return ["".join(text for text, _ in line) for line in draw(state, sheet, width, height)]


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        ("", ["Alpha", "beta", "gamma"]),
        ("s", ["beta", "gamma", "Alpha"]),
        ("sr", ["Alpha", "gamma", "beta"]),
        ("ss", ["Alpha", "beta", "gamma"]),
        ("ssr", ["gamma", "beta", "Alpha"]),
        ("sss", ["Alpha", "beta", "gamma"]),
        ("S", ["Alpha", "beta", "gamma"]),
    ],
)
def test_s_and_r_choose_the_order(keys: str, order: list[str]) -> None:
    assert names(after(*keys)) == order


def test_a_filter_applies_while_it_is_typed() -> None:
    typing = after("/", "A", "m")
    assert names(typing) == ["gamma"]
    assert screen(typing)[-1].startswith("/Am_")
    assert names(after("backspace", state=typing)) == ["Alpha", "beta", "gamma"]
    assert names(after("escape", state=typing)) == ["Alpha", "beta", "gamma"]
    kept = after("enter", state=typing)
    assert (kept.pattern, kept.typed) == ("Am", None)
    assert names(after("escape", state=kept)) == ["Alpha", "beta", "gamma"]


def test_letters_of_a_filter_are_not_commands() -> None:
    assert after("/", "q").is_over is False
    assert after("/", "q", "enter", "q").is_over is True


def test_the_chosen_row_stays_among_the_rows() -> None:
    assert after("up").at == 0
    assert after("j", "down").at == 2
    assert after("end", "down").at == 2
    assert after("page down", "page up").at == 0


def test_enter_looks_into_a_row_and_escape_comes_back() -> None:
    inside = after("b", "down", "enter")
    assert inside == State("function", "self", path=(Step("process", "b", "beta", 1),))
    assert after("escape", state=inside) == State("process", "self", at=1)


def test_another_kind_of_rows_begins_at_the_top() -> None:
    inside = after("b", "enter")
    assert after("b", state=inside) == START
    assert after("B").by == "process"


def test_help_goes_away_with_any_key() -> None:
    assert any("pause" in line for line in screen(after("h"), height=24))
    assert after("h", "s") == START
    assert after("h", "q").is_over


def test_the_screen_has_the_rows_and_what_was_chosen() -> None:
    shown = screen(after("b", "enter", " "))
    assert shown[0] == "PAUSED  12:00:00  9 samples > process Alpha"
    assert shown[1].startswith("▂▄█  last minute, up to 4.00 CPUs")
    assert shown[2:5] == [
        "  self  total  function",
        f"{'     5      5  Alpha':80}",
        f"{'     3      9  beta':80}",
    ]
    assert len(shown) == 10


def test_rows_scroll_with_the_chosen_one() -> None:
    many = [SheetRow(n, f"row {n:02}", (100 - n, 0), (str(n), "0")) for n in range(50)]
    assert "row 25" in "".join(screen(START._replace(at=25), rows=many))
    assert "row 00" not in "".join(screen(START._replace(at=25), rows=many))
    assert "row 49" in "".join(screen(START._replace(at=49), rows=many))


@given(
    st.lists(st.sampled_from(KEYS), max_size=8),
    st.integers(1, 100),
    st.integers(1, 30),
    st.text(max_size=40),
)
def test_every_screen_fits(keys: list[str], width: int, height: int, name: str) -> None:
    rows = [SheetRow(name, name, (1, 1), ("1", "1"), 1.0), *ROWS]
    lines = screen(after(*keys), width, height, rows)
    assert len(lines) <= height
    assert max(map(display_width, lines)) <= width
    assert "\n" not in "".join(lines)
