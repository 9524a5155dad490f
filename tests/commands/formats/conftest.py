"""A browser for all tests of a module, and pages opened in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from purebpf.results.formats import html
from tests.support.builders import profiles
from tests.support.oracles.browser import Open, Page, chromium

SCREENSHOTS = Path(__file__).resolve().parents[3] / "build/screenshots"


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def driver(downloads: Path) -> Iterator[Any]:
    with chromium(downloads) as found:
        yield found


@pytest.fixture
def open_page(driver: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Open]:
    """Open a page from a file; a screenshot is kept in build/screenshots."""
    opened: list[Page] = []

    def show(text: str) -> Page:
        path = tmp_path / "page.html"
        path.write_text(text)
        opened.append(Page(driver, f"file://{path}"))
        return opened[-1]

    yield show
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    driver.save_screenshot(str(SCREENSHOTS / f"{request.node.name}.png".replace("/", "_")))
    for page in opened:
        assert page.complaints() == []


@pytest.fixture
def page(open_page: Open) -> Page:
    """The example's page."""
    return open_page(html.page(profiles.example()))
