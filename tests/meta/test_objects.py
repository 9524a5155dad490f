"""The shipped BPF objects are what the sources in the tree compile to."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


ROOT = Path(__file__).resolve().parents[2]
OBJECTS = ROOT / "purebpf/objects"
LOCK = json.loads((OBJECTS / "LOCK").read_text())


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def shipped() -> list[str]:
    return sorted(path.name for path in OBJECTS.glob("*.bpf.o"))


def test_every_program_is_shipped_and_locked() -> None:
    programs = [path.name for path in (ROOT / "bpf_src").glob("*.bpf.c")]
    assert sorted(name.replace(".bpf.c", ".bpf.o") for name in programs) == shipped()
    assert sorted(LOCK["objects"]) == shipped()


@pytest.mark.parametrize("name", shipped())
def test_the_lock_tells_the_objects_bytes(name: str) -> None:
    assert sha256(OBJECTS / name) == LOCK["objects"][name]["sha256"]


@pytest.mark.parametrize("name", shipped())
def test_the_sources_have_not_changed_since_the_build(name: str) -> None:
    for source, digest in LOCK["objects"][name]["sources"].items():
        assert sha256(ROOT / source) == digest, f"{source} changed: run `make bpf`"


def test_every_source_says_its_licence() -> None:
    for source in (ROOT / "bpf_src").rglob("*.[ch]"):
        first = source.read_text().splitlines()[0]
        assert first == "// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause", source


@pytest.mark.needs("clang")
def test_another_checkout_builds_the_same_bytes(tmp_path: Path) -> None:
    tree = tmp_path / "a/deeper/checkout"
    shutil.copytree(ROOT / "bpf_src", tree / "bpf_src")
    shutil.copytree(ROOT / "scripts", tree / "scripts")
    subprocess.run([sys.executable, tree / "scripts/build_objects.py"], check=True)
    for name in (*shipped(), "LOCK"):
        assert (tree / "purebpf/objects" / name).read_bytes() == (OBJECTS / name).read_bytes()


@pytest.mark.needs("clang")
def test_a_stale_object_is_named(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "bpf_src", tmp_path / "bpf_src")
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    shutil.copytree(OBJECTS, tmp_path / "purebpf/objects")
    for other in {*(tmp_path / "bpf_src").glob("*.bpf.c")} - {tmp_path / "bpf_src/exec.bpf.c"}:
        other.unlink()  # it takes minutes to compile all of them
    with (tmp_path / "bpf_src/exec.bpf.c").open("a") as source:
        source.write("int more;\n")
    check = [sys.executable, tmp_path / "scripts/build_objects.py", "--check"]
    result = subprocess.run(check, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "purebpf/objects/exec.bpf.o is not what clang-19 makes of bpf_src/" in result.stdout
