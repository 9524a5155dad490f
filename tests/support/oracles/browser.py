"""Chromium without a window, to look at our pages as their reader does."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE_S = 30


@contextmanager
def chromium(downloads: Path, *more: str) -> Iterator[Any]:
    """A driver; files that a page saves go to `downloads`. `more` are options of Chromium."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in (
        *(more or ("--disable-gpu",)),
        *("--headless=new", "--disable-dev-shm-usage"),
        *("--window-size=1400,900", "--force-device-scale-factor=1"),
        *(("--no-sandbox",) if os.getuid() == 0 else ()),
    ):
        options.add_argument(argument)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        yield driver
    finally:
        driver.quit()


def until(found: Callable[[], Any]) -> Any:
    """What `found` returns as soon as it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := found()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)
    return value


class Page:
    """A page of ours in the browser. Every complaint of the browser fails the test that asks."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver = driver
        driver.get_log("browser")
        driver.get(address)
        until(lambda: self.run("return document.documentElement.dataset.ready") == "yes")

    def run(self, script: str, *arguments: object) -> Any:
        """The value of a piece of JavaScript; `app` is the page's."""
        return self.driver.execute_script(f"const app = window.purebpf; {script}", *arguments)

    def text(self, name: str) -> str:
        return str(self.run("return document.getElementById(arguments[0]).textContent", name))

    def click(self, name: str) -> None:
        self.driver.find_element("id", name).click()

    def choose(self, name: str, value: str) -> None:
        self.run(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event('change'))",
            *(name, value),
        )

    def search(self, text: str) -> str:
        field = self.driver.find_element("id", "search")
        field.clear()
        field.send_keys(text or "x\b")  # what clears a field does not tell it so
        return self.text("found")

    def press(self, keys: str) -> None:
        self.driver.find_element("tag name", "body").send_keys(keys)

    def boxes(self, graph: str = "flame") -> list[list[list[Any]]]:
        """For each row of a graph its boxes: name, weight and width in pixels."""
        found = self.run(
            f"return app.{graph}.rows.map((row) => row.map((box) => "
            "[app.nameOf(box.branch.frame), box.branch.weight, box.width]))"
        )
        return list(found)

    def click_box(self, name: str, graph: str = "flame") -> None:
        """Click in the middle of the first box with a name."""
        x, y = self.run(
            f"const graph = app.{graph}; for (const [row, boxes] of graph.rows.entries())"
            " for (const box of boxes) if (app.nameOf(box.branch.frame) === arguments[0])"
            " return [box.left + box.width / 2, graph.top(row) + 9]",
            name,
        )
        canvas = self.driver.find_element("css selector", f"#{graph}")
        from selenium.webdriver import ActionChains

        size = canvas.size
        ActionChains(self.driver).move_to_element_with_offset(
            canvas, round(x - size["width"] / 2), round(y - size["height"] / 2)
        ).click().perform()

    def only(self, kind: str, value: str) -> None:
        """Count only what has a value of a label; "": everything again."""
        self.run("app.filters.choose(arguments[0], arguments[1])", kind, value)

    def table(self) -> dict[str, tuple[str, str]]:
        """The lines of the table: name to own and total."""
        rows = self.run(
            "return [...document.querySelectorAll('#body tr')].map("
            "(row) => [...row.cells].map((cell) => cell.textContent))"
        )
        return {row[-2]: (row[0], row[2]) for row in rows}

    def complaints(self) -> list[str]:
        return [json.dumps(each) for each in self.driver.get_log("browser")]


Open = Callable[[str], Page]
"""Opens a page from its text."""
