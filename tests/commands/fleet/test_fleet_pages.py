"""`purebpf fleet serve` in a browser: a range is chosen on the time line, a flame graph opened."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.commands.conftest import ROOT
from tests.commands.fleet.test_fleet import fleet
from tests.support.host.deliveries import Truth, messages
from tests.support.oracles.browser import chromium, until
from tests.support.probe_machine import AXE

pytestmark = [pytest.mark.any_kernel, pytest.mark.needs("browser")]

RANGE = "since=2026-11-22T15:00&until=2026-11-22T15:10"


@pytest.fixture(scope="module")
def truth() -> Truth:
    return Truth()


@pytest.fixture(scope="module")
def address(truth: Truth, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("pages")
    for number, one in enumerate(messages(truth, hosts=3, minutes=10)):
        (folder / f"{number}.otlp").write_bytes(one.data)
    fleet(folder / "store", "import", *map(str, folder.glob("*.otlp")))
    words = [sys.executable, "-m", "purebpf", "fleet", "serve", "--store", str(folder / "store")]
    with subprocess.Popen(
        [*words, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stderr
        line = process.stderr.readline()
        found = re.search(r"http\S+", line)
        assert found, line + process.stderr.read()
        yield found[0]
        process.terminate()
        assert process.wait(60) == 0


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("saved")) as driver:
        yield driver


def rows(browser: Any, table: int) -> list[list[str]]:
    """The cells of a table of the page, which is complete when it has its last line."""
    script = (
        "return document.querySelector('.coverage') && [...document.querySelectorAll('table')]"
        "[arguments[0]] && [...[...document.querySelectorAll('table')][arguments[0]].tBodies[0]"
        ".rows].map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    found: list[list[str]] = until(lambda: browser.execute_script(script, table))
    return found


def test_a_range_of_a_service_from_the_time_line_to_its_flame_graph(
    browser: Any, address: str, truth: Truth
) -> None:
    browser.get_log("browser")
    browser.get(f"{address}&{RANGE}")
    assert "token" not in browser.current_url
    assert {cells[3] for cells in rows(browser, 1)} == {"host0", "host1", "host2"}
    whole = sum(truth.own.values())
    heaviest, own = truth.own.most_common(1)[0]
    first = rows(browser, 0)[0]
    assert first[0] == f"{100 * own / whole:.2f} %"
    assert first[3].startswith(heaviest)

    # the fourth to the sixth minute, by a mouse
    browser.execute_script("""
        const svg = document.querySelector("#time svg");
        const area = svg.getBoundingClientRect();
        svg.setPointerCapture = () => {};
        for (const [type, part] of [["down", 0.31], ["move", 0.5], ["up", 0.58]])
          svg.dispatchEvent(new PointerEvent(`pointer${type}`, {
            clientX: area.left + part * area.width, button: 0, bubbles: true }));
    """)
    until(lambda: "T15%3A03" in browser.current_url)
    asked = parse_qs(urlsplit(browser.current_url).query)
    assert (asked["since"], asked["until"]) == (["2026-11-22T15:03"], ["2026-11-22T15:06"])
    assert all(cells[1] == "3" for cells in rows(browser, 1))  # windows

    browser.find_element("link text", "shop").click()
    until(lambda: "service=shop" in browser.current_url)
    rows(browser, 1)
    browser.find_element("link text", "flame graph").click()
    until(lambda: browser.execute_script("return document.documentElement.dataset.ready") == "yes")
    title = browser.title
    assert "3 hosts, service shop, 2026-11-22 15:03 to 2026-11-22 15:06 UTC" in title
    assert browser.get_log("browser") == []


def test_what_changed_and_its_flame_graph(browser: Any, address: str) -> None:
    browser.get_log("browser")
    later = "since=2026-11-22T15:05&until=2026-11-22T15:10"
    browser.get(f"{address}&{later}".replace("/?", "/regressions?"))
    until(
        lambda: browser.execute_script("return document.querySelectorAll('.coverage').length == 2")
    )
    text = browser.find_element("tag name", "main").text
    # each minute of each host is drawn anew: chance explains what differs
    assert "0 functions grew" in text
    assert "15 and 15 windows differ" in text
    browser.find_element("link text", "as a flame graph").click()
    until(lambda: browser.execute_script("return document.documentElement.dataset.ready") == "yes")
    assert "->" in browser.title
    assert browser.get_log("browser") == []


@pytest.mark.needs("axe")
@pytest.mark.parametrize("path", ["/?", "/regressions?"])
def test_keyboards_and_screen_readers_have_what_they_need(
    browser: Any, address: str, path: str
) -> None:
    browser.get(f"{address}&{RANGE}&since=2026-11-22T15:05".replace("/?", path))
    until(lambda: browser.execute_script("return document.querySelector('.coverage')"))
    script = f"{AXE.read_text()}; axe.run().then((found) => arguments[0](found.violations))"
    violations = browser.execute_async_script(script)
    assert [(rule["id"], rule["nodes"][0]["html"]) for rule in violations] == []


def test_others_are_not_served(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    done = fleet(tmp_path, "serve", "--listen", "0.0.0.0:0", status=1)
    assert "would go in the clear" in " ".join(done.stderr.split())
    tokens = tmp_path / "tokens"
    tokens.write_text("secret web-1\n")
    tokens.chmod(0o600)
    done = fleet(tmp_path, "serve", "--listen", "127.0.0.1:0", "--tokens", str(tokens), status=1)
    assert "none reads" in " ".join(done.stderr.split())
    done = fleet(tmp_path / "nothing", "serve", "--listen", "127.0.0.1:0", status=1)
    assert "nothing" in done.stderr
