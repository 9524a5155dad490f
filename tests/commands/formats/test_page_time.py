"""The page in a real browser: its time line, the spans chosen there, and the live page."""

from __future__ import annotations

from typing import Any

import pytest

from purebpf.results.formats import html
from tests.support.builders import profiles
from tests.support.oracles.browser import Open, Page, until

pytestmark = [pytest.mark.needs("browser"), pytest.mark.any_kernel]

TOTAL = profiles.example().total


def test_a_profile_without_a_time_line_shows_none(page: Page) -> None:
    assert page.run("return document.getElementById('time').hidden")


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag over the time line; places are parts of its width and height."""
    from selenium.webdriver import ActionChains

    heat = page.driver.find_element("id", "heat")
    width, height = heat.size["width"], heat.size["height"]
    (left, top), (right, bottom) = (
        (round((x - 0.5) * width), round((y - 0.5) * height)) for x, y in (start, end)
    )
    ActionChains(page.driver).move_to_element_with_offset(
        heat, left, top
    ).click_and_hold().move_to_element_with_offset(heat, right, bottom).release().perform()


def test_a_span_of_time(open_page: Open) -> None:
    page = open_page(html.page(profiles.timed()))
    assert not page.run("return document.getElementById('time').hidden")
    assert page.run("return [...app.timeline.totals]") == [1, 0, 0, 5, 0, 0, 0, 0, 0, 4]
    drag(page, (0.01, 0.3), (0.55, 0.3))
    assert page.boxes()[0][0][:2] == ["all", 6]
    assert page.text("span") == "0.00 s to 0.12 s"
    page.click("whole")
    assert page.boxes()[0][0][:2] == ["all", 10]


def test_a_span_of_a_column_for_each_second(open_page: Open) -> None:
    page = open_page(html.page(profiles.timed()))
    page.choose("columns", "seconds")
    height = page.driver.find_element("id", "heat").size["height"]
    cell = (height - 16) / height / 50  # fifty slots in a second, the first at the bottom
    bottom = (height - 16) / height
    drag(page, (0.5, bottom - 0.5 * cell), (0.5, bottom - 5.5 * cell))
    assert page.boxes()[0][0][:2] == ["all", 6]


def test_the_live_page_follows(driver: Any) -> None:
    from purebpf.cli.live import LivePage

    with LivePage(("127.0.0.1", 0), "live") as live:
        page = Page(driver, live.url)

        def seconds() -> int:
            return int(page.run("return document.documentElement.dataset.seconds") or 0)

        def sent(until_second: int) -> bool:
            live.send(profiles.example)
            return seconds() >= until_second

        until(lambda: sent(1))
        first = page.boxes()[0][0][1]
        assert first % TOTAL == 0
        until(lambda: sent(3))
        assert page.boxes()[0][0][1] > first
        assert page.search("vfs_") == "35.00% in 1 function"
        assert len(page.run("return [...app.timeline.totals]")) == 60
        assert page.run("return app.timeline.slotNs") == 1e9  # 0 was "up to Infinity of 2 CPUs"
        assert page.run("return app.timeline.describe(59)").startswith("-1.00 s to 0.00 s  ")
        labels = page.run("return [0, 20, 60].map((at) => app.timeline.label(at, 60))")
        assert labels == ["-60 s", "-40 s", "now"]
        page.click("pause")
        shown = page.boxes()[0][0][1]
        live.send(profiles.example)
        page.choose("by", "function")
        assert page.boxes()[0][0][1] == shown
        page.click("pause")
        until(lambda: page.boxes()[0][0][1] > shown)
        assert page.complaints() == []
    until(lambda: page.text("live-status") == "the command has ended")


def test_the_time_line_is_in_cpus_where_samples_come_at_a_rate(open_page: Open) -> None:
    profile = profiles.timed()
    assert open_page(html.page(profile)).run("return app.rate(50)") == "50 samples a second"
    profile.about |= {"frequency_hz": 100, "cpus": [0, 1]}
    assert open_page(html.page(profile)).run("return app.rate(50)") == "0.50 of 2 CPUs"
