"""The page of a difference in a real browser."""

from __future__ import annotations

import pytest

from purebpf.results.formats import html
from purebpf.results.shape import page_data
from tests.support.builders import profiles
from tests.support.oracles.browser import Open, Page

pytestmark = [pytest.mark.needs("browser"), pytest.mark.any_kernel]


def difference(open_page: Open) -> Page:
    return open_page(html.comparison(*profiles.sides(), "before -> after"))


def test_a_difference_is_red_and_blue(open_page: Open) -> None:
    page = difference(open_page)
    hues = page.run(
        "return Object.fromEntries(app.flame.rows.at(-1).map(({ branch }) => "
        "[app.nameOf(branch.frame), app.flame.colour(branch).split(' ')[0]]))"
    )
    assert hues == {
        "work": "hsl(214",  # without saturation: grey
        "help": "hsl(214",
        "__libc_start_call_main": "hsl(4",
    }
    page.click_box("help")
    assert "before 40.00%, after 0.00%: -40.00%" in page.text("selected")


def test_a_change_by_chance_has_no_colour(open_page: Open) -> None:
    page = difference(open_page)
    strengths = page.run(
        "return Object.fromEntries(app.flame.rows.at(-1).map(({ branch }) => "
        "[app.nameOf(branch.frame), app.change(branch)]))"
    )
    assert strengths == {"work": 0, "help": -1, "__libc_start_call_main": 1}
    page.click_box("work")
    assert "before 60.00%, after 75.00%: +15.00%, by chance" in page.text("selected")


def test_time_is_not_sampled() -> None:
    sides = profiles.sides()
    for profile in sides:
        profile.unit = "ns"
    assert page_data.pack(sides[1], sides[0]).head["deviates"] == 0


def test_a_difference_shows_what_vanished(open_page: Open) -> None:
    page = difference(open_page)
    page.click("tab-vanished")
    assert page.text("vanished-body") == "4040.00%helpapp"
    page.click("tab-table")
    lines = page.run(
        "return [...document.querySelectorAll('#body tr')].map("
        "(row) => [...row.cells].map((cell) => cell.textContent))"
    )
    assert ["150", "75.00%", "150", "75.00%", "60.00%", "by chance", "work", "app"] in lines
    page.click("tab-graph")
    page.choose("widths", "weight")
    assert "help" not in [name for name, *_ in page.boxes()[-1]]
    page.choose("widths", "before")
    assert [(name, round(width / 14)) for name, _, width in page.boxes()[-1]] == [
        *(("help", 40), ("work", 60)),
    ]
