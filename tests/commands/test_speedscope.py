"""speedscope itself opens what we write for it, and counts the same."""

from __future__ import annotations

import re
import shutil
from base64 import b64encode
from pathlib import Path

import pytest

from purebpf.report import Profile, folded, speedscope, table
from tests.support.browser import chromium, until
from tests.support.profiles import example

pytestmark = [pytest.mark.needs("browser", "speedscope"), pytest.mark.any_kernel]

GRAPHICS = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
LINE = re.compile(r"^(\d+) \(\S+%\)\s+(\d+) \(\S+%\)\s+(\S.*)$", re.MULTILINE)


def shown(name: str, content: str, folder: Path) -> dict[str, tuple[int, int]]:
    """The table of its sandwich view: function to own and total weight."""
    program = shutil.which("speedscope")
    assert program
    page = Path(program).resolve().parents[1] / "dist/release/index.html"
    script = folder / "load.js"
    encoded = b64encode(content.encode()).decode()
    script.write_text(f'speedscope.loadFileFromBase64("{name}", "{encoded}")')
    with chromium(folder, *GRAPHICS, "--allow-file-access-from-files") as driver:
        driver.get(f"file://{page}#localProfilePath={script}")

        def lines() -> list[tuple[str, str, str]]:
            driver.find_element("tag name", "body").send_keys("3")  # its sandwich view
            return LINE.findall(driver.execute_script("return document.body.innerText"))

        told = until(lines)
    return {name: (int(own), int(total)) for total, own, name in told}


def expected(profile: Profile) -> dict[str, tuple[int, int]]:
    """The same, by us; speedscope sees processes as functions."""
    found = {line.function.name: line[1:] for line in table.lines(profile)}
    return found | {"app": (0, 80), "tool": (0, 18), "kworker/0:1": (2, 2)}


def test_its_own_format(tmp_path: Path) -> None:
    profile = example()
    found = shown("a.speedscope.json", speedscope.document(profile), tmp_path)
    assert found == expected(profile)


def test_folded_stacks(tmp_path: Path) -> None:
    profile = example()
    assert shown("a.folded", "".join(folded.lines(profile)), tmp_path) == expected(profile)
