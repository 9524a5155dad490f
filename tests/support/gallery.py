"""Make the pictures of docs/gallery.md: .venv/bin/python -m tests.support.gallery [NAME ...].

Each is what a command of purebpf gives of a small workload: a page in the tests' own browser, or
text as a terminal shows it. Needs root, node, chromium and chromedriver.
"""

from __future__ import annotations

import base64
import html
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.oracles.browser import Page, chromium

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs/images"
PUREBPF = Path(sys.executable).with_name("purebpf")
SHOP = Path("/tmp/shop/shop.js")  # its path is in the pictures
QUALITY = 55  # of WebP: 20 to 60 kB a picture
SCALE = 0.75

PIPES = "find /usr/include -name '*.h' -print0 | xargs -0 cat | sort | uniq -c | sort -n | tail -1"

_TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #fff }}
pre {{ display: inline-block; margin: 0; padding: 14px 18px; font: 14px/1.35 "DejaVu Sans Mono",
  monospace; color: #d6dbe0; background: #1b2027 }}
b {{ color: #8fd18f; font-weight: normal }}
</style><pre id="terminal"><b>$ {command}</b>
{text}</pre>"""


def main(names: list[str]) -> None:
    """Make all pictures, or those that are named."""
    IMAGES.mkdir(exist_ok=True)
    SHOP.parent.mkdir(exist_ok=True)
    shutil.copy(Path(__file__).with_name("shop.js"), SHOP)
    with tempfile.TemporaryDirectory() as scratch, chromium(Path(scratch)) as driver:
        for name in names or PICTURES:
            PICTURES[name](driver, Path(scratch), IMAGES / f"{name}.webp")
            size = (IMAGES / f"{name}.webp").stat().st_size
            print(f"docs/images/{name}.webp: {size // 1000} kB")


def run(*arguments: str) -> str:
    """Run a command of purebpf: what it printed, its last lines included."""
    ended = subprocess.run(
        [str(PUREBPF), *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=SHOP.parent,
        env={**os.environ, "PATH": f"{PUREBPF.parent}:{os.environ['PATH']}"},
    )
    return ended.stdout + ended.stderr


def shop(*more: str) -> tuple[str, ...]:
    """The workload: a service in JavaScript that parses, prices, sorts and renders orders."""
    return ("--", "node", str(SHOP), "15", *more)


def capture(driver: Any, target: Path, width: float, height: float) -> None:
    """The upper left part of the page, as a small picture."""
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": SCALE}
    picture = driver.execute_cdp_cmd(
        "Page.captureScreenshot", {"format": "webp", "quality": QUALITY, "clip": clip}
    )
    target.write_bytes(base64.b64decode(picture["data"]))


def on_a_telephone(driver: Any, target: Path, address: str) -> None:
    """The page on 390 by 844 pixels, in the dark."""
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    try:
        Page(driver, address)
        capture(driver, target, 390, 844)
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def terminal(driver: Any, scratch: Path, target: Path, command: str, text: str) -> None:
    """Text as a terminal shows it."""
    page = scratch / "terminal.html"
    page.write_text(_TERMINAL.format(command=html.escape(command), text=html.escape(text)))
    driver.get(page.as_uri())
    size = driver.find_element("id", "terminal").size
    capture(driver, target, size["width"], size["height"])


def profile(driver: Any, scratch: Path, target: Path) -> None:
    path = scratch / "profile.html"
    run("profile", "-F", "499", "-U", "-o", str(path), *shop())
    page = Page(driver, path.as_uri())
    page.search("discount")
    capture(driver, target, 1400, 712)
    on_a_telephone(driver, target.with_name("telephone.webp"), path.as_uri())


ORDERS = """
import json, re, time

class Orders:
    def get(self, count):
        return self.render([{"id": i, "name": "x" * i, "sum": i / 7} for i in range(count)])

    def render(self, rows):
        return re.sub(r"[0-9]+", self.mark, json.dumps(rows, indent=1))

    def mark(self, match):
        return f"<b>{match.group()}</b>"

end = time.monotonic() + 5
while time.monotonic() < end:
    Orders().get(40)
"""


def python(driver: Any, scratch: Path, target: Path) -> None:
    (scratch / "orders.py").write_text(ORDERS)
    path = scratch / "python.html"
    run("profile", "-F", "499", "-o", str(path), "--", "python3", str(scratch / "orders.py"))
    Page(driver, path.as_uri())
    capture(driver, target, 1400, 480)


def diff(driver: Any, scratch: Path, target: Path) -> None:
    run("profile", "-F", "499", "-U", "-o", "before.json", *shop())
    run("profile", "-F", "499", "-U", "-o", "after.json", *shop("fast"))
    run("diff", "before.json", "after.json", "-o", str(scratch / "diff.html"))
    Page(driver, (scratch / "diff.html").as_uri())
    capture(driver, target, 1400, 712)


def mem(driver: Any, scratch: Path, target: Path) -> None:
    path = scratch / "mem.html"
    program = SHOP.with_name("allocations")
    source = ROOT / "tests/data/allocations.c"
    subprocess.run(["gcc", "-g", "-O0", "-o", str(program), str(source)], check=True)
    run("mem", "-o", str(path), "--", "sh", "-c", "./allocations; true")  # it ends with 7
    on_a_telephone(driver, target, path.as_uri())


def offcpu(driver: Any, scratch: Path, target: Path) -> None:
    path = scratch / "offcpu.html"
    run("offcpu", "-K", "--waker", "-o", str(path), "--", "sh", "-c", PIPES)
    Page(driver, path.as_uri())
    capture(driver, target, 1400, 480)


def service(driver: Any, scratch: Path, target: Path) -> None:
    venv, path = scratch / "venv", scratch / "waits.html"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    subprocess.run([venv / "bin/pip", "install", "-q", "flask", "waitress"], check=True)
    program = ROOT / "examples/slow_service/slow_service.py"
    command = [str(venv / "bin/python"), str(program), "60"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            time.sleep(5)  # until it serves
            run("offcpu", "-U", "-o", str(path), "-p", str(process.pid), "5")
        finally:
            process.terminate()
    page = Page(driver, path.as_uri())
    page.search("GIL")
    capture(driver, target, 1400, 640)


def summary(driver: Any, scratch: Path, target: Path) -> None:
    arguments = ("summary", "-T", "8", "--errno-summary", "--", "sh", "-c", PIPES)
    shown = "sudo purebpf summary -T 8 --errno-summary -- sh -c 'find ... | sort | uniq -c | ...'"
    _, heading, table = run(*arguments).partition(" Summary of events")
    terminal(driver, scratch, target, shown, heading + table.partition("\nlost:")[0].strip("\n"))


def runqlat(driver: Any, scratch: Path, target: Path) -> None:
    with subprocess.Popen(["node", str(SHOP), "6"]), subprocess.Popen(["node", str(SHOP), "6"]):
        table, first, last = run("runqlat", "-e", "3", "1").partition("Tracing ")
    announced, _, rest = f"{first}{last}".partition("\n")  # a terminal shows it before the table
    text = f"{announced}\n\n{table.strip(chr(10))}\n{rest}"
    terminal(driver, scratch, target, "sudo purebpf runqlat -e 3 1", text.strip("\n"))


PICTURES: dict[str, Callable[[Any, Path, Path], None]] = {
    "profile": profile,
    "python": python,
    "diff": diff,
    "mem": mem,
    "offcpu": offcpu,
    "service": service,
    "summary": summary,
    "runqlat": runqlat,
}

if __name__ == "__main__":
    main(sys.argv[1:])
