"""What is pinned is what setup.cfg asks for; and the bill of materials says the same."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from configparser import ConfigParser

import pytest

from tests.support.environment import ROOT

_PINNED = re.compile(r"^([\w.-]+)(?:\[\w+\])?==([\w.]+) \\$", re.MULTILINE)
_ASKED = re.compile(r"^([\w.-]+)(?:\[\w+\])?(.*)$")


def lock(name: str) -> dict[str, str]:
    """Versions by package."""
    text = (ROOT / f"requirements/{name}.txt").read_text()
    return {package.lower(): version for package, version in _PINNED.findall(text)}


def asked(*extras: str) -> list[str]:
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    texts = [config["options"]["install_requires"]]
    texts += [config["options.extras_require"][extra] for extra in extras]
    return [line for text in texts for line in text.split("\n") if line]


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def fits(version: str, limits: str) -> bool:
    checks = {">=": tuple.__ge__, "<": tuple.__lt__, "==": tuple.__eq__}
    return all(
        checks[operator](number(version), number(limit))
        for operator, limit in re.findall(r"(>=|<|==)([\d.]+)", limits)
    )


@pytest.mark.parametrize(
    ("name", "requirements"),
    [
        ("run", asked()),
        ("ci", asked("dev", "fuzz")),
        ("engines", asked("clickhouse", "spark")),
        ("referee", asked("referee")),
        ("release", asked("release")),
    ],
    ids=["run", "ci", "engines", "referee", "release"],
)
def test_every_package_that_is_asked_for_is_pinned(name: str, requirements: list[str]) -> None:
    pinned = lock(name)
    assert len(requirements) >= 4
    for requirement in requirements:
        match = _ASKED.match(requirement)
        assert match is not None
        assert fits(pinned[match[1].lower()], match[2]), requirement


@pytest.mark.parametrize("name", ["run", "ci", "engines", "referee", "release"])
def test_every_package_has_hashes(name: str) -> None:
    text = (ROOT / f"requirements/{name}.txt").read_text()
    parts = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    packages = [part for part in parts if part.strip() and not part.startswith("#")]
    assert len(packages) == len(lock(name))
    for part in packages:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", part), part


def test_ci_runs_what_is_shipped() -> None:
    """A package of the zipapp has the same version in CI."""
    shipped, tested = lock("run"), lock("ci")
    assert shipped == {name: tested[name] for name in shipped}
    for name in ("engines", "referee", "release"):
        built = lock(name)
        assert shipped == {package: built[package] for package in shipped}


def test_the_bill_of_materials_has_every_package_and_object() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/sbom.py"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    bill = json.loads(done.stdout)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    parts = bill["components"]
    packages = {part["name"]: part["version"] for part in parts if part["type"] == "library"}
    assert packages == lock("run")
    objects = {
        part["name"]: part["hashes"][0]["content"] for part in parts if part["type"] == "file"
    }
    assert objects == {
        f"purebpf/objects/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (ROOT / "purebpf/objects").glob("*.spec")
    }


def test_the_page_of_dependencies_has_every_package() -> None:
    page = (ROOT / "docs/dependencies.md").read_text()
    for requirement in asked("dev", "numpy"):
        match = _ASKED.match(requirement)
        assert match is not None
        assert match[1] in page, requirement
    demangle = page.partition("\n## demangle\n")[2]
    assert f"version {lock('run')['demangle']}" in demangle
