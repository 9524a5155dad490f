"""The page of a big profile in Chromium: how soon it is there, and how soon it has found a name.

    python bench/page.py [--stacks 100000] [--depth 40] [--rounds 3]

Milliseconds since the load began, by the browser's own clock; a search until the next frame is
drawn. The stacks are those of bench/report.py.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import report
import results
from results import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))

from purebpf.results.formats import html
from tests.support.oracles.browser import Page, chromium, until

_WATCH = """
new MutationObserver(() => {
  if (document.documentElement.dataset.ready === "yes")
    requestAnimationFrame(() => { window.drawn = performance.now(); });
}).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-ready"] });
"""
_FIRST = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
_SEARCH = """
const [text, done] = arguments, field = document.getElementById("search");
const began = performance.now();
field.value = text;
field.dispatchEvent(new Event("input"));
requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
"""
_HEAP = "return performance.memory.usedJSHeapSize / 2 ** 20"


def seen(driver: Any, address: str) -> dict[str, float]:
    """What one load of the page took."""
    page = Page(driver, address)
    until(lambda: page.run("return window.drawn") and page.run(_FIRST))
    took = [driver.execute_async_script(_SEARCH, f"function_{number}") for number in (7, 12, 4711)]
    assert page.text("found").endswith("in 1 function")
    assert page.complaints() == []
    return {
        "first paint": page.run(_FIRST),
        "flame graph drawn": page.run("return window.drawn"),
        "a search": statistics.median(took),
        "heap": page.run(_HEAP),
    }


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """Load it a few times."""
    gc.disable()
    with tempfile.TemporaryDirectory() as folder, chromium(Path(folder)) as driver:
        path = Path(folder, "page.html")
        path.write_text(html.page(report.made(options.stacks, options.depth)))
        watch = {"source": _WATCH}
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", watch)
        rounds = [seen(driver, f"file://{path}") for _ in range(options.rounds)]
    for what, unit, limit in (
        ("first paint", "ms", 200),
        ("flame graph drawn", "ms", 500),
        ("a search", "ms", 200),
        ("heap", "MB", None),
    ):
        yield Figure(what, statistics.median(round_[what] for round_ in rounds), unit, limit=limit)


if __name__ == "__main__":
    sys.exit(results.run(measure, report.parser(__doc__, rounds=3).parse_args()))
