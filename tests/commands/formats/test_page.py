"""The page in a real browser: what it shows is what the profile holds, and it reacts."""

from __future__ import annotations

import json as reader
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from purebpf.results import Labels, Profile
from purebpf.results.formats import folded, html
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


def test_search_says_how_much_matched(page: Page) -> None:
    assert page.search("vfs_") == "35.00% in 1 function"
    assert page.search("VFS_") == "0.00% in 0 functions", "a capital letter is meant"
    assert page.search("^vfs_") == "0.00% in 0 functions", "text as it stands"
    assert page.search("libc") == "89.00% in 1 function", "modules are searched too"
    page.click("expression")
    assert page.search("^work|help") == "80.00% in 2 functions"
    assert page.search("(").startswith("wrong expression: ")
    assert page.search("") == ""


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


def test_a_stack_is_copied_leaf_first(page: Page) -> None:
    page.click_box("work")
    page.click("copy")
    stack = "work\nmain\n__libc_start_call_main\napp\n"
    assert until(lambda: page.run("return app.copied")) == stack


def saved(page: Page, downloads: Path, kind: str, name: str) -> bytes:
    path = downloads / name
    path.unlink(missing_ok=True)
    page.choose("save", kind)
    until(path.exists)
    return path.read_bytes()


def test_folded_is_saved_from_the_page(page: Page, downloads: Path) -> None:
    found = saved(page, downloads, "folded", "profile.folded").decode().splitlines(keepends=True)
    assert Counter(found) == Counter(folded.lines(profiles.example()))


def test_speedscope_is_saved_from_the_page(page: Page, downloads: Path) -> None:
    page.only("comm", "tool")
    tree = reader.loads(saved(page, downloads, "speedscope", "profile.speedscope.json"))
    frames = tree["shared"]["frames"]
    (sampled,) = tree["profiles"]
    stacks = {
        tuple(frames[number]["name"] for number in stack): weight
        for stack, weight in zip(sampled["samples"], sampled["weights"], strict=True)
    }
    assert stacks == {
        ("tool", "__libc_start_call_main", "[unknown]"): 9,
        ("tool", "[Missed User Stack]", "entry_SYSCALL_64", "vfs_read"): 5,
        ("tool", "main", "[Missed Kernel Stack]"): 4,
    }


@pytest.mark.needs("go")
def test_pprof_is_saved_from_the_page(page: Page, downloads: Path) -> None:
    saved(page, downloads, "pprof", "profile.pb.gz")
    command = ["go", "tool", "pprof", "-traces", str(downloads / "profile.pb.gz")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "40   work\n             main\n             __libc_start_call_main" in told
    command[3] = "-top"
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"Total samples = {TOTAL} " in told or f"of {TOTAL} total" in told


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


def difference(open_page: Open) -> Page:
    return open_page(html.comparison(*profiles.sides(), "before -> after"))


def test_a_difference_is_red_and_blue(open_page: Open) -> None:
    page = difference(open_page)
    hues = page.run(
        "return Object.fromEntries(app.flame.rows.at(-1).map(({ branch }) => "
        "[app.nameOf(branch.frame), app.flame.colour(branch).split(' ')[0]]))"
    )
    assert hues == {
        "work": "hsl(4",
        "help": "hsl(214",
        "__libc_start_call_main": "hsl(4",
    }
    page.click_box("work")
    assert "before 60.00%, after 75.00%: +15.00%" in page.text("selected")


def test_a_difference_shows_what_vanished(open_page: Open) -> None:
    page = difference(open_page)
    page.click("tab-vanished")
    assert page.text("vanished-body") == "4040.00%helpapp"
    page.click("tab-table")
    lines = page.run(
        "return [...document.querySelectorAll('#body tr')].map("
        "(row) => [...row.cells].map((cell) => cell.textContent))"
    )
    assert ["150", "75.00%", "150", "75.00%", "60.00%", "+15.00%", "work", "app"] in lines
    page.click("tab-graph")
    page.choose("widths", "weight")
    assert "help" not in [name for name, *_ in page.boxes()[-1]]
    page.choose("widths", "before")
    assert [(name, round(width / 14)) for name, _, width in page.boxes()[-1]] == [
        *(("help", 40), ("work", 60)),
    ]


def test_the_first_line_says_what_was_measured(page: Page) -> None:
    assert page.text("brief") == "2.0 s · 99 Hz · example · 100 samples · 2.3% of frames unnamed"
    assert page.text("verdict") == "incomplete"
    assert not page.run("return document.getElementById('run').open")
    assert "frequency_hz" not in page.text("facts")


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


def test_a_picture_of_lines_is_saved(page: Page, downloads: Path) -> None:
    from xml.etree import ElementTree as ET

    tree = ET.fromstring(saved(page, downloads, "svg", "profile.svg"))
    texts = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}title")]
    assert "work  70 samples, 70.00%" in "\n".join(text or "" for text in texts)


def test_a_picture_of_pixels_is_saved(page: Page, downloads: Path) -> None:
    assert saved(page, downloads, "png", "profile.png").startswith(b"\x89PNG\r\n\x1a\n")


def test_hostile_names_are_saved_as_a_picture(open_page: Open, downloads: Path) -> None:
    from xml.etree import ElementTree as ET

    page = open_page(html.page(profiles.hostile()))
    ET.fromstring(saved(page, downloads, "svg", "profile.svg"))


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
        page.click("pause")
        shown = page.boxes()[0][0][1]
        live.send(profiles.example)
        page.choose("by", "function")
        assert page.boxes()[0][0][1] == shown
        page.click("pause")
        until(lambda: page.boxes()[0][0][1] > shown)
        assert page.complaints() == []
    until(lambda: page.text("live-status") == "the command has ended")


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


def test_the_time_line_is_in_cpus_where_samples_come_at_a_rate(open_page: Open) -> None:
    profile = profiles.timed()
    assert open_page(html.page(profile)).run("return app.rate(50)") == "50 samples a second"
    profile.about |= {"frequency_hz": 100, "cpus": [0, 1]}
    assert open_page(html.page(profile)).run("return app.rate(50)") == "0.50 of 2 CPUs"


def test_functions_without_a_symbol_count_as_unnamed(open_page: Open) -> None:
    profile = Profile()
    name = "liblzma.so.5.4.1!0x15ae0"
    stripped = profiles.WORK._replace(name=name, module="/usr/lib/liblzma.so.5.4.1")
    profile.add((stripped, profiles.MAIN), (), 7, Labels("xz", 185))
    assert "50% of frames unnamed" in open_page(html.page(profile)).text("brief")
