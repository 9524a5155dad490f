"""speedscope itself opens what we write for it, and counts the same."""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64encode
from pathlib import Path

import jsonschema
import pytest

from purebpf.results import Labels, Marks, Profile
from purebpf.results.formats import chrome, folded, speedscope
from purebpf.results.shape import table
from tests.support.builders.profiles import HELP, MAIN, WORK, example, hostile
from tests.support.oracles.browser import chromium, until

pytestmark = [pytest.mark.needs("speedscope"), pytest.mark.any_kernel]

GRAPHICS = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
LINE = re.compile(r"^([\d.]+)(?:µs)? \(\S+%\)\s+([\d.]+)(?:µs)? \(\S+%\)\s+(\S.*)$", re.MULTILINE)


def release() -> Path:
    """The folder of the program's pages, and of the schema of its files."""
    program = shutil.which("speedscope")
    assert program
    return Path(program).resolve().parents[1] / "dist/release"


def shown(name: str, content: str, folder: Path) -> dict[str, tuple[float, float]]:
    """The table of its sandwich view: function to own and total weight."""
    page = release() / "index.html"
    script = folder / "load.js"
    encoded = b64encode(content.encode()).decode()
    script.write_text(f'speedscope.loadFileFromBase64("{name}", "{encoded}")')
    with chromium(folder, *GRAPHICS, "--allow-file-access-from-files") as driver:
        driver.get(f"file://{page}#localProfilePath={script}")

        def lines() -> list[tuple[str, str, str]]:
            driver.find_element("tag name", "body").send_keys("3")  # its sandwich view
            return LINE.findall(driver.execute_script("return document.body.innerText"))

        told = until(lines)
    return {name: (float(own), float(total)) for total, own, name in told}


def expected(profile: Profile) -> dict[str, tuple[int, int]]:
    """The same, by us; speedscope sees processes as functions."""
    found = {line.function.name: line[1:] for line in table.lines(profile)}
    return found | {"app": (0, 80), "tool": (0, 18), "kworker/0:1": (2, 2)}


@pytest.mark.parametrize("profile", [example(), hostile(), Profile("")])
def test_a_document_is_valid_by_speedscopes_schema(profile: Profile) -> None:
    schema = json.loads((release() / "file-format-schema.json").read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    tree = json.loads(speedscope.document(profile))
    validator.validate(tree)
    del tree["shared"]
    assert not validator.is_valid(tree), "the schema refuses what it does not know"


@pytest.mark.needs("browser")
def test_its_own_format(tmp_path: Path) -> None:
    profile = example()
    found = shown("a.speedscope.json", speedscope.document(profile), tmp_path)
    assert found == expected(profile)


@pytest.mark.needs("browser")
def test_folded_stacks_are_read_by_speedscope(tmp_path: Path) -> None:
    profile = example()
    assert shown("a.folded", "".join(folded.lines(profile)), tmp_path) == expected(profile)


@pytest.mark.needs("browser")
def test_waits_as_trace_events(tmp_path: Path) -> None:
    profile = Profile("waits", unit="ns")
    owner = Labels("app", 185, 185)
    for number, (leaf, microseconds) in enumerate([(WORK, 40), (HELP, 30), (WORK, 30)], 1):
        marks = Marks(ended_ns=100_000 * number)
        profile.add((leaf, MAIN), (), 1000 * microseconds, owner, marks=marks)
    found = shown("a.trace.json", "".join(chrome.document(profile)), tmp_path)
    assert found == {
        'work {"stack":["work","main"]}': (70, 70),
        'help {"stack":["help","main"]}': (30, 30),
    }
