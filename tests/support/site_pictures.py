"""Look at the site in a browser: .venv/bin/python -m tests.support.site_pictures [PAGE ...].

Reads build/site, which scripts/site.sh makes. Prints what axe-core objects to, on each page in
windows of 1,440, 1,024 and 390 pixels, in light and in dark colours, and pages that are wider.
Writes pictures of some pages into build/site-pictures. Exits with 1 if there is anything to print.
Needs chromium, chromedriver, and axe-core in build/npm (scripts/packages.sh).
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.oracles.browser import chromium

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build/site"
PICTURES = ROOT / "build/site-pictures"
AXE = ROOT / "build/npm/node_modules/axe-core/axe.min.js"
WIDTHS = (1440, 1024, 390)
SCHEMES = ("light", "dark")
PICTURED = ("", "answers", "profile", "install", "compare", "gallery", "api")
PATIENCE_S = 600  # the reference is long

# Colours depend on the scheme, everything else does not: in dark, axe looks at them alone. The page
# answers a new width in its next frame.
_EXAMINE = """
const [only, done] = arguments;
const options = {resultTypes: ["violations"]};
if (only) options.runOnly = {type: "rule", values: [only]};
const name = (rule) => `${rule.id}: ${rule.nodes.length} x ${rule.nodes[0].target.join(" ")}`;
const look = () => axe.run(document, options).then((found) => done(found.violations.map(name)));
requestAnimationFrame(() => requestAnimationFrame(look));
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def _pages(names: Sequence[str]) -> list[str]:
    found = sorted(page.parent.relative_to(SITE).as_posix() for page in SITE.rglob("index.html"))
    return [page.removeprefix(".") for page in found if not names or page in names]


def _resize(driver: Any, width: int, height: int = 900) -> None:
    shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)


def _look(driver: Any, address: str, page: str) -> Iterator[str]:
    for scheme in SCHEMES:
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        _resize(driver, WIDTHS[0])
        driver.get(f"{address}/{page}/" if page else f"{address}/")
        driver.execute_script(AXE.read_text())
        rule = None if scheme == SCHEMES[0] else "color-contrast"
        for width in WIDTHS:
            _resize(driver, width)
            where = f"{page or 'index'}, {width} pixels, {scheme}"
            for violation in driver.execute_async_script(_EXAMINE, rule):
                yield f"{where}: {violation}"
            widest = driver.execute_script("return document.documentElement.scrollWidth")
            if widest > width:
                yield f"{where}: the page is {widest} pixels wide"
            if page in PICTURED:
                name = f"{page or 'index'}-{width}-{scheme}.png"
                driver.save_screenshot(str(PICTURES / name))


def main(names: Sequence[str]) -> int:
    """Look at pages, or at all of them, and return 1 if something is wrong."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    pages = _pages(names)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    wrong = 0
    with tempfile.TemporaryDirectory() as downloads, chromium(Path(downloads)) as driver:
        driver.set_script_timeout(PATIENCE_S)
        driver.set_page_load_timeout(PATIENCE_S)
        for page in pages:
            for line in _look(driver, f"http://127.0.0.1:{server.server_port}", page):
                wrong += 1
                print(line, flush=True)
    server.shutdown()
    print(f"{len(pages)} pages, {wrong} complaints")
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
