"""The layouts of PHP, and the file that says which one it has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.runtimes.php.layout import LAYOUTS, version_of
from purebpf.runtimes.php.php_file import read_php_file
from purebpf.symbols.elf_image import ElfImage
from tests.support.programs import phps

ROOT = Path(__file__).parents[4]
SCRIPT = ROOT / "scripts/generate_runtime.py"
GOLDEN = sorted((ROOT / "tests/data/php").glob("*.json"))
HEADERS = sorted(Path("/usr/include/php").glob("*/main/php.h"))


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_a_layout_is_that_of_the_headers(golden: Path) -> None:
    expected = json.loads(golden.read_text())
    layout = LAYOUTS[expected.pop("api")]
    assert {name: getattr(layout, name) for name in expected} == expected
    assert len(expected) == len(layout._fields)


def test_each_interface_has_its_version() -> None:
    versions = [version_of(api) for api in LAYOUTS]
    assert versions == ["8.0", "8.1", "8.2", "8.3", "8.4"]
    assert version_of(320190902) == "7.4"
    assert version_of(1) == ""


@pytest.mark.skipif(not HEADERS, reason="there are no headers of PHP")
@pytest.mark.parametrize("header", HEADERS, ids=str)
def test_the_headers_here_have_the_golden_layout(header: Path) -> None:
    subprocess.run([sys.executable, SCRIPT, "--check", header.parents[1]], check=True)


@pytest.mark.skipif(not phps.every(), reason="there is no php")
@pytest.mark.parametrize("php", phps.params())
def test_a_file_says_its_interface_and_its_loop(php: Path) -> None:
    file = read_php_file(ElfImage.of_bytes(php.read_bytes(), str(php)))
    assert file is not None
    assert file.api in LAYOUTS
    assert not file.has_threads
    assert file.executor
    assert file.generators
    assert file.loop[0].end - file.loop[0].start > 10_000


def test_other_files_have_no_engine() -> None:
    assert read_php_file(ElfImage.of_bytes(Path("/bin/true").read_bytes(), "true")) is None


def test_a_folder_of_headers_that_do_not_compile_fails(tmp_path: Path) -> None:
    (tmp_path / "main").mkdir()
    (tmp_path / "main/php.h").write_text("#error no\n")
    command = [sys.executable, SCRIPT, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "do not compile" in done.stderr
    assert "Traceback" not in done.stderr
