"""Every view of the page: what it says, on a telephone, in the dark, to keyboards and readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from purebpf.results import Labels, Profile
from purebpf.results.formats import html
from tests.support.builders import profiles
from tests.support.builders.profiles import MAIN, WORK
from tests.support.oracles.browser import Open, Page, until
from tests.support.probe_machine import AXE

pytestmark = [pytest.mark.needs("browser"), pytest.mark.any_kernel]

SORT_ROWS = (
    "sort_rows(std::vector<std::__cxx11::basic_string<char, std::char_traits<char>, "
    "std::allocator<char> >, std::allocator<std::__cxx11::basic_string<char, "
    "std::char_traits<char>, std::allocator<char> > > >&, unsigned long)"
)


def long_names() -> Profile:
    found = Profile("names of a compiler")
    found.add((WORK._replace(name=SORT_ROWS), MAIN), (), 1, Labels("app", 1))
    return found


PAGES: dict[str, Callable[[], str]] = {
    "waiting": lambda: html.page(profiles.waiting()),
    "timed": lambda: html.page(profiles.timed()),
    "difference": lambda: html.comparison(*profiles.sides(), "before -> after"),
    "long names": lambda: html.page(long_names()),
}


def axe(page: Page) -> list[tuple[str, str]]:
    """What axe-core finds wrong with what is shown: rules, and where."""
    script = "axe.run().then((found) => arguments[0](found.violations))"
    page.driver.execute_script(AXE.read_text())
    violations = page.driver.execute_async_script(script)
    return [(rule["id"], rule["nodes"][0]["html"]) for rule in violations]


VIEWS = {
    "graph": "app.tab = 'graph'; app.draw()",
    "facts": "document.getElementById('run').open = true",
    "choices": "document.getElementById('more').open = true",
    "search": "document.getElementById('search').value = 'm'; app.search(); app.goToHit(0)",
    "matches": "document.getElementById('hits-open').open = true",
    "menu": "document.getElementById('act').click()",
    "narrowed": "app.menu.close(); app.only.add('main\\n/srv/app\\nuser'); app.weigh()",
    "callers": "app.openSandwich(app.hits[0].frame); app.draw()",
    "table": "app.tab = 'table'; app.draw()",
    "keys": "document.getElementById('keys').showModal()",
}


@pytest.mark.needs("axe")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("made", ["waiting", "timed", "difference"])
def test_keyboards_and_screen_readers_have_what_they_need(
    open_page: Open, theme: str, made: str
) -> None:
    page = open_page(PAGES[made]())
    page.run("app.dark = arguments[0]; app.weigh()", theme == "dark")
    views = VIEWS if made == "waiting" else {"graph": VIEWS["graph"], "table": VIEWS["table"]}
    if made == "difference":
        views = {**views, "vanished": "app.tab = 'vanished'; app.draw()"}
    for view, script in views.items():
        page.run(script)
        assert axe(page) == [], view


@pytest.fixture
def phone(driver: Any) -> Iterator[None]:
    """A window of 390 by 844 pixels, as telephones have them."""
    size = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    yield
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.usefixtures("phone")
@pytest.mark.parametrize("made", ["waiting", "timed", "difference", "long names"])
def test_every_view_fits_on_a_telephone(open_page: Open, made: str) -> None:
    page = open_page(PAGES[made]())
    views = {**VIEWS, "vanished": "app.tab = 'vanished'; app.draw()"}
    for view, script in views.items():
        page.run(script)
        wide = page.run("return document.documentElement.scrollWidth")
        assert wide <= 390, view


def test_cpp_names_are_short_and_whole_on_demand(open_page: Open) -> None:
    page = open_page(PAGES["long names"]())
    captions = page.run("return app.flame.rows.flat().map((box) => app.flame.caption(box, 7))")
    assert "sort_rows(vector<string>&, ulong)" in captions
    for text in ("sort_rows(vector<string>&", "basic_string", SORT_ROWS):
        assert page.search(text) == "100.00% in 1 function"
    first, second, *_ = page.run(
        "return app.describeMore(app.flame, app.flame.rows.at(-1)[0].branch)"
    )
    assert first == "sort_rows(vector<string>&, ulong)  1 sample, 100.00%"
    assert second == SORT_ROWS
    page.click("tab-table")
    cell = "document.querySelector('#body td.name').firstChild"
    assert page.run(f"return [{cell}.textContent, {cell}.title]") == [first[:33], SORT_ROWS]


def test_colours_have_a_legend(open_page: Open) -> None:
    assert open_page(html.page(profiles.example())).text("legend") == "nativekernelno name"
    legend = open_page(PAGES["difference"]()).text("legend")
    assert legend == "grewsame, or chance of samplingshrank"


def test_a_difference_says_what_both_sides_are(open_page: Open) -> None:
    before, after = profiles.example(), profiles.timed()
    page = open_page(html.comparison(before, after, "before -> after"))
    assert page.text("brief").startswith("before: 2.0 s, 99 Hz, example, 100 samples · after: ")
    assert page.text("verdict") == "incomplete", "the earlier one is"
    assert "before: 100 samples. Incomplete" in page.text("quality")
    assert "after: 10 samples. Nothing was lost" in page.text("quality")
    again = open_page(html.comparison(before, before, "before -> after"))
    assert again.text("brief").startswith("2.0 s · 99 Hz · example · 100 samples · ")


def test_a_difference_has_what_grew_on_top(open_page: Open) -> None:
    page = open_page(PAGES["difference"]())
    page.click("tab-table")
    assert list(page.table())[:2] == ["__libc_start_call_main", "work"]
    page.run("document.querySelector('th.change button').click()")
    assert next(iter(page.table())) == "help"


def test_the_time_line_says_what_is_under_the_pointer(open_page: Open) -> None:
    page = open_page(html.page(profiles.timed()))
    heat = "document.getElementById('heat')"
    page.run(
        f"const box = {heat}.getBoundingClientRect();"
        f"{heat}.dispatchEvent(new PointerEvent('pointermove', "
        "{ clientX: box.left + 0.35 * box.width, clientY: box.top + 9 }))"
    )
    assert page.text("tip") == "0.06 s to 0.08 s  250 samples a second"
    page.run(f"{heat}.dispatchEvent(new PointerEvent('pointerleave'))")
    assert page.run("return document.getElementById('tip').hidden")


def test_keys_pick_a_span_of_time(open_page: Open) -> None:
    from selenium.webdriver.common.keys import Keys

    page = open_page(html.page(profiles.timed()))
    heat = page.driver.find_element("id", "heat")
    heat.send_keys(Keys.ARROW_RIGHT)
    assert page.boxes()[0][0][:2] == ["all", 1]
    heat.send_keys(Keys.SHIFT + Keys.ARROW_RIGHT * 3)
    assert page.text("span") == "0.00 s to 0.08 s"
    assert page.boxes()[0][0][:2] == ["all", 6]
    heat.send_keys(Keys.NULL + Keys.ARROW_RIGHT)
    assert page.text("span") == "0.02 s to 0.10 s"
    heat.send_keys(Keys.ESCAPE)
    assert page.boxes()[0][0][:2] == ["all", 10]


def test_the_columns_of_the_time_line_are_in_the_address(open_page: Open) -> None:
    page = open_page(html.page(profiles.timed()))
    page.choose("columns", "seconds")
    address = until(lambda: "columns=" in page.driver.current_url and page.driver.current_url)
    page.driver.get("about:blank")
    assert Page(page.driver, address).run("return app.timeline.bySecond")


def test_bytes_have_a_unit_that_fits(open_page: Open) -> None:
    profile = Profile("memory", unit="bytes")
    profile.add((WORK, MAIN), (), 12_345_678, Labels("app", 1))
    page = open_page(html.page(profile))
    assert page.text("brief").startswith("12.3 MB")
    page.click_box("work")
    assert page.text("selected").startswith("work  12.35 MB, 100.00%")
    page.click("act")
    assert page.run("return document.activeElement.textContent") == "Zoom to this"
