"""The page in a real browser: what is found, filtered, hidden and folded."""

from __future__ import annotations

import pytest

from tests.support.builders import profiles
from tests.support.oracles.browser import Page

pytestmark = [pytest.mark.needs("browser"), pytest.mark.any_kernel]

TOTAL = profiles.example().total


def test_search_says_how_much_matched(page: Page) -> None:
    assert page.search("vfs_") == "35.00% in 1 function"
    assert page.search("VFS_") == "0.00% in 0 functions", "a capital letter is meant"
    assert page.search("^vfs_") == "0.00% in 0 functions", "text as it stands"
    assert page.search("libc") == "89.00% in 1 function", "modules are searched too"
    page.click("expression")
    assert page.search("^work|help") == "80.00% in 2 functions"
    assert page.search("(").startswith("wrong expression: ")
    assert page.search("") == ""


@pytest.mark.parametrize(
    ("kind", "value", "total"),
    [
        ("process", "tool (7)", 14),
        ("comm", "tool", 18),
        ("cpu", "CPU 1", 39),
        ("cgroup", "/system.slice/app.service", 80),
    ],
)
def test_a_filter_restricts_the_page_until_it_is_cleared(
    page: Page, kind: str, value: str, total: int
) -> None:
    page.only(kind, value)
    assert page.boxes()[0][0][:2] == ["all", total]
    page.only(kind, "")
    assert page.boxes()[0][0][:2] == ["all", TOTAL]


def test_enter_goes_through_the_matches(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    field = page.driver.find_element("id", "search")
    page.search("e")
    names = page.run("return app.hits.map(({ frame }) => app.nameOf(frame))")
    seen = []
    for _ in names:
        field.send_keys(Keys.ENTER)
        seen.append(page.run("return app.nameOf(app.flame.selected?.frame ?? -1)"))
    assert seen == names
    field.send_keys(Keys.SHIFT + Keys.ENTER)
    assert page.text("found").startswith(f"{len(names) - 1} of {len(names)}: ")
    assert page.run("return document.querySelectorAll('#hit-list li').length") == len(names)


def test_what_was_not_found_is_faint(page: Page) -> None:
    page.search("vfs_read")
    strengths = page.run(
        "return Object.fromEntries(app.flame.rows.flat().map((box) => "
        "[app.nameOf(box.branch.frame), app.flame.strength(box)]))"
    )
    assert strengths.pop("all") == strengths.pop("vfs_read") == 1
    assert set(strengths.values()) == {0.3}


def test_recursion_and_the_nameless_are_folded(page: Page) -> None:
    depth = len(page.boxes())
    page.choose("fold", "recursion")
    assert len(page.boxes()) == depth - 1
    assert sum(name == "work" for row in page.boxes() for name, *_ in row) == 1


def test_a_hidden_function_leaves_its_callees(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.click_box("main")
    page.press("m")
    assert page.run("return document.activeElement.textContent") == "Zoom to this"
    page.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN * 3 + Keys.ENTER)
    assert page.text("narrowing") == "without main (show all)"
    assert not any(name == "main" for row in page.boxes() for name, *_ in row)
    assert page.boxes()[0][0][:2] == ["all", TOTAL]
    page.run("document.querySelector('#narrowing button').click()")
    assert any(name == "main" for row in page.boxes() for name, *_ in row)


def test_only_the_stacks_with_a_function(page: Page) -> None:
    page.run(
        "app.only.add('vfs_read\\nkernel\\nkernel'); app.weigh()",
    )
    assert page.boxes()[0][0][:2] == ["all", 35]
    assert page.text("narrowing") == "only with vfs_read (show all)"


def test_processes_are_found_by_name(page: Page) -> None:
    page.run("document.querySelector('#filter-process summary').click()")
    field = page.driver.find_element("css selector", "#filter-process input")
    field.send_keys("kwor")
    lines = page.run(
        "return [...document.querySelectorAll('#filter-process li')].map((e) => e.textContent)"
    )
    assert lines == ["kworker/0:1 (9)2.0%"]
    page.run("document.querySelector('#filter-process li button').click()")
    assert page.boxes()[0][0][:2] == ["all", 2]
