"""The page in a real browser: what it shows is what the profile holds, and it reacts."""

from __future__ import annotations

from typing import Any

import pytest

from purebpf.results import Labels, Profile
from purebpf.results.formats import html
from purebpf.results.model.profile import Marks
from purebpf.results.model.stack_end import StackEnd
from purebpf.results.shape import table
from tests.support.builders import profiles
from tests.support.oracles.browser import Open, Page, until

pytestmark = [pytest.mark.needs("browser"), pytest.mark.any_kernel]

TOTAL = profiles.example().total


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_key_switches_between_dark_and_light(page: Page, theme: str) -> None:
    if page.run("return app.dark") is (theme == "light"):
        page.press("d")
    wanted = [255, 255, 255] if theme == "light" else [22, 24, 29]
    found = page.run(
        "const canvas = document.getElementById('flame');"
        "const pixels = canvas.getContext('2d').getImageData(canvas.width - 2, 40, 1, 1).data;"
        "return [document.documentElement.classList.contains('dark'), ...pixels]"
    )
    assert found[0] is (theme == "dark")
    assert page.run("return getComputedStyle(document.body).backgroundColor") == (
        f"rgb({', '.join(map(str, wanted))})"
    )


def wide(row: list[list[Any]]) -> dict[str, float]:
    return {name: weight for name, weight, _ in row}


def test_boxes_are_as_wide_as_their_weight(page: Page) -> None:
    rows = page.boxes()
    assert rows[0] == [["all", TOTAL, pytest.approx(1400, abs=20)]]
    assert wide(rows[1]) == {"app": 80, "tool": 18, "kworker/0:1": 2}
    full = rows[0][0][2]
    for row in rows:
        for _, weight, width in row:
            assert width == pytest.approx(full * weight / TOTAL)
    app = [row for row in rows if any(name == "vfs_read" for name, *_ in row)]
    assert app


def test_the_quality_is_said(page: Page) -> None:
    told = page.text("quality")
    assert "Incomplete" in told
    assert "map_full: 2. 2 found no place. Raise it" in told
    assert "missed: 3 of 103" in told
    assert "file is stripped" in told
    assert "truncated" not in told
    assert "hint" not in told


def test_hints_come_with_the_quality(open_page: Open) -> None:
    profile = profiles.example()
    profile.hints = ["node (PID 7) names <b>more</b>"]
    assert "hint: node (PID 7) names <b>more</b>" in open_page(html.page(profile)).text("quality")


def test_a_complete_profile_says_so(open_page: Open) -> None:
    page = open_page(html.page(profiles.timed()))
    assert "Nothing was lost; 0.0% of frames have no name" in page.text("quality")


def test_a_profile_without_callers_is_not_called_complete(open_page: Open) -> None:
    profile = profiles.timed()
    profile.about["call_graph"] = "tables"
    assert open_page(html.page(profile)).text("verdict") == "nothing lost"
    row = next(iter(profile.rows()))
    marks = Marks(end=StackEnd(cut="read_fault"))
    profile.add(row.user, (), profile.total, row.labels, marks=marks)
    page = open_page(html.page(profile))
    assert page.text("verdict") == "incomplete"
    assert "lost: callers in 50 % of the user stacks (read_fault)" in page.text("quality")


def test_zoom_and_reset(page: Page) -> None:
    page.click_box("tool")
    rows = page.boxes()
    assert [name for name, *_ in rows[1]] == ["tool"]
    assert rows[1][0][2] == rows[0][0][2]
    assert {name for name, *_ in rows[2]} == {
        *("[Missed User Stack]", "__libc_start_call_main", "main"),
    }
    page.click("reset")
    assert wide(page.boxes()[1]) == {"app": 80, "tool": 18, "kworker/0:1": 2}


def test_bottom_up_begins_with_what_used_the_time(page: Page) -> None:
    page.click("invert")
    rows = page.boxes()
    own = {line.function.name: line.own for line in table.lines(profiles.example()) if line.own}
    assert wide(rows[1]) == own | {"kworker/0:1": 2}
    page.click_box("vfs_read")
    assert wide(page.boxes()[2]) == {"entry_SYSCALL_64": 35}


def test_sandwich_shows_callers_and_callees(page: Page) -> None:
    page.click_box("work")
    page.click("look")
    callers, callees = page.boxes("callers"), page.boxes("callees")
    assert wide(callers[0]) == wide(callees[0]) == {"work": 70}
    assert wide(callers[1]) == {"main": 70}
    assert wide(callees[1]) == {"work": 30}, "recursion is a callee"
    assert wide(callees[2]) == {"help": 30}


def test_the_table_has_the_numbers_of_the_report(page: Page) -> None:
    page.click("tab-table")
    wanted = {
        line.function.name: (str(line.own), str(line.total))
        for line in table.lines(profiles.example())
    }
    assert page.table() == wanted
    page.choose("by", "module")
    assert page.table()["kernel"] == ("39", "39")
    page.choose("by", "cgroup")
    assert page.table() == {
        "/system.slice/app.service": ("80", "80"),
        "[no cgroup]": ("20", "20"),
    }
    page.choose("by", "comm")
    assert page.table()["tool"] == ("18", "18")


def test_each_key_does_what_the_help_says(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.press("i")
    assert page.run("return app.inverted")
    page.press("i")
    page.press(Keys.ARROW_DOWN)
    assert page.text("selected").startswith("app  80 samples, 80.00%")
    page.press(Keys.ARROW_RIGHT)
    assert page.text("selected").startswith("kworker/0:1  2 samples")
    page.press(Keys.ARROW_LEFT + Keys.ARROW_DOWN)
    assert page.text("selected").startswith("__libc_start_call_main")
    page.press(Keys.ENTER)
    assert page.boxes()[2][0][2] == page.boxes()[0][0][2]
    page.press(Keys.ESCAPE)
    assert wide(page.boxes()[1]) == {"app": 80, "tool": 18, "kworker/0:1": 2}
    page.press("/")
    assert page.run("return document.activeElement.id") == "search"
    page.press(Keys.ESCAPE)
    dark = page.run("return app.dark")
    page.press("d")
    assert page.run("return document.documentElement.classList.contains('dark')") is not dark
    page.press("t")
    assert page.table()


def test_hostile_names_are_only_text(open_page: Open) -> None:
    page = open_page(html.page(profiles.hostile()))
    assert page.driver.title == profiles.HOSTILE[0]
    page.click("tab-table")
    names = page.table()
    assert "</script><script>document.title='hostile'</script>" in names
    assert "line?break??and tab" in names
    assert "x" * 65536 in names
    assert page.run("return document.title") == profiles.HOSTILE[0]
    assert page.run("return document.scripts.length") == 3
    assert page.run("return document.images.length") == 0


def test_an_empty_profile_is_a_page_too(open_page: Open) -> None:
    page = open_page(html.page(Profile("nothing ran")))
    assert page.boxes() == []
    assert "0 samples" in page.text("quality")
    page.click("invert")
    page.click("tab-table")
    assert page.table() == {}


def test_the_page_connects_to_nothing(page: Page) -> None:
    told = page.driver.execute_async_script(
        "fetch('http://127.0.0.1:9/').then(() => arguments[0]('yes'), () => arguments[0]('no'))"
    )
    assert told == "no"
    (complaint, *_) = page.complaints()
    assert "Content Security Policy" in complaint
    page.complaints()


def test_the_first_line_says_what_was_measured(page: Page) -> None:
    assert page.text("brief") == "2.0 s · 99 Hz · example · 100 samples · 2.3% of frames unnamed"
    assert page.text("verdict") == "incomplete"
    assert not page.run("return document.getElementById('run').open")
    assert "frequency_hz" not in page.text("facts")


def lefts(page: Page, row: int) -> list[str]:
    return [name for name, *_ in page.boxes()[row]]


def test_the_order_is_chosen(page: Page) -> None:
    assert lefts(page, 1) == ["app", "kworker/0:1", "tool"]
    page.choose("order", "weight")
    assert lefts(page, 1) == ["app", "tool", "kworker/0:1"]
    page.choose("order", "")
    page.click("invert")
    weights = [weight for _, weight, _ in page.boxes()[1]]
    assert weights == sorted(weights, reverse=True)


def test_by_time_the_earliest_is_left(open_page: Open) -> None:
    page = open_page(html.page(profiles.timed()))
    page.choose("order", "time")
    assert lefts(page, -1) == ["work", "help"]


def test_the_address_brings_back_what_was_seen(page: Page) -> None:
    page.search("vfs")
    page.only("comm", "app")
    page.choose("order", "weight")
    page.click_box("work")
    before = page.boxes()
    address = until(lambda: "zoom=" in page.driver.current_url and page.driver.current_url)
    page.driver.get("about:blank")
    again = Page(page.driver, address)
    assert again.boxes() == before
    assert again.text("found") == "37.50% in 1 function"


def test_a_box_says_its_share_of_its_caller(page: Page) -> None:
    lines = page.run(
        "const box = app.flame.rows.flat().find((box) => app.nameOf(box.branch.frame) === 'work');"
        "return app.describeMore(app.flame, box.branch)"
    )
    assert lines[0] == "work  70 samples, 70.00%"
    assert lines[2] == "self 40 samples, 57.1% of it · 87.5% of main"


def test_columns_sort_the_table(page: Page) -> None:
    page.click("tab-table")

    def names() -> list[str]:
        return list(page.table())

    page.run("document.querySelector('#lines th:nth-last-child(2) button').click()")
    assert names() == sorted(names())
    page.run("document.querySelector('#lines th:nth-last-child(2) button').click()")
    assert names() == sorted(names(), reverse=True)
    sorts = page.run("return document.querySelector('[aria-sort]').getAttribute('aria-sort')")
    assert sorts == "descending"


def test_waiting_is_coloured_by_state(open_page: Open) -> None:
    page = open_page(html.page(profiles.waiting()))
    assert page.text("legend") == "runningrun queuesleeping"
    assert lefts(page, 2) == ["app (2)"]
    states = page.run("return app.flame.statesOf(app.flame.rows[2][0].branch)")
    assert states == [["sleeping", 7000], ["running", 2000], ["run queue", 1000]]
    work = page.run(
        "const box = app.flame.rows.flat().find((box) => app.nameOf(box.branch.frame) === 'work');"
        "return app.flame.statesOf(box.branch)"
    )
    assert work == [["running", 2000], ["run queue", 1000]]


def test_idle_waits_are_told_from_the_others_and_can_be_left_out(open_page: Open) -> None:
    profile = profiles.waiting()
    idle = Labels("app", 1, 3, state="S")
    profile.add((profiles.HELP,), (), 90_000, idle, marks=Marks("off-CPU", is_idle=True))
    page = open_page(html.page(profile))
    assert page.text("legend") == "runningrun queuesleepingidle"
    options = "return [...document.getElementById('filter-state').options].map((one) => one.text)"
    assert page.run(options)[:2] == ["any state", "all but idle"]
    assert page.boxes()[0][0][1] == 100_000
    page.choose("filter-state", "all but idle")
    assert page.boxes()[0][0][1] == 10_000
    page.choose("filter-state", "idle")
    assert page.boxes()[0][0][1] == 90_000
    page.choose("filter-state", "")
    assert page.boxes()[0][0][1] == 100_000


def test_the_waker_is_above_a_line(open_page: Open) -> None:
    page = open_page(html.page(profiles.waiting()))
    rows = [[name for name, *_ in row] for row in page.boxes()]
    above = [row[0] for row in rows[4:]]
    assert above == ["vfs_read", "-- woken by --", "vfs_read", "help", "other"]
    page.click("tab-table")
    assert page.table() == {
        "vfs_read": ("7.00 us", "7.00 us"),
        "work": ("3.00 us", "3.00 us"),
        "main": ("0.00 us", "10.00 us"),
    }, "the wait is spent where it was, not by who ended it"


def test_the_menu_leads_to_the_source_line(open_page: Open) -> None:
    profile = Profile()
    work = profiles.WORK._replace(file="/src/shop.c", line=42)
    profile.add((work, profiles.MAIN), (), 7, Labels("shop", 185))
    page = open_page(html.page(profile))
    entries = page.run(
        "const at = (name) => app.model.functions.findIndex((entry) => entry.name === name);"
        "const menu = (name) => app.menuOf(app.flame, { frame: at(name), model: app.model })"
        ".map(([text]) => text);"
        f"return [menu('{work.name}'), menu('{profiles.MAIN.name}')]"
    )
    assert {"Copy the hottest source line", "Open it in VS Code"} <= set(entries[0])
    assert not any("source" in text for text in entries[1])
    assert page.run(f"return app.model.functions.find((e) => e.name === '{work.name}').source") == (
        "/src/shop.c:42"
    )


def test_functions_without_a_symbol_count_as_unnamed(open_page: Open) -> None:
    profile = Profile()
    name = "liblzma.so.5.4.1!0x15ae0"
    stripped = profiles.WORK._replace(name=name, module="/usr/lib/liblzma.so.5.4.1")
    profile.add((stripped, profiles.MAIN), (), 7, Labels("xz", 185))
    assert "50% of frames unnamed" in open_page(html.page(profile)).text("brief")
