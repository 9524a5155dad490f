"""Imports from bytecode files: the same modules as by the import system, and only present ones."""

from __future__ import annotations

import compileall
import os
import py_compile
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from purebpf.cli.bytecode import BytecodeFinder

INSTALLED = """
import sys
from purebpf.__main__ import start
sys.argv = ["purebpf", "--help"]
try:
    start()
finally:
    loader = sys.modules["purebpf.cli.output"].__loader__
    print(type(loader).__module__, file=sys.stderr)
"""
NAMES = ("sample.inner", "sample.inner.leaf", "sample.beside")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with bytecode files of everything in it."""
    (tmp_path / "sample/inner").mkdir(parents=True)
    for name in ("sample/__init__", "sample/inner/__init__", "sample/inner/leaf", "sample/beside"):
        (tmp_path / f"{name}.py").write_text(f"NAME = {name!r}\n")
    assert compileall.compile_dir(tmp_path, quiet=1)
    return tmp_path / "sample"


def folders_of(package: Path, name: str) -> list[str]:
    return [str(package.parent.joinpath(*name.split(".")[:-1]))]


@pytest.mark.parametrize("name", NAMES)
def test_a_spec_equals_that_of_the_import_system(package: Path, name: str) -> None:
    folders = folders_of(package, name)
    spec, usual = (
        BytecodeFinder("sample").find_spec(name, folders),
        PathFinder.find_spec(name, folders),
    )
    assert spec is not None
    assert usual is not None
    for field in ("name", "origin", "cached", "has_location", "submodule_search_locations"):
        assert getattr(spec, field) == getattr(usual, field)
    assert spec.loader is not None
    code = spec.loader.get_code(name)  # type: ignore[attr-defined]
    assert code == usual.loader.get_code(name)  # type: ignore[union-attr]
    assert code.co_filename == spec.origin


def test_code_that_is_asked_for_again_is_the_present_one(package: Path) -> None:
    spec = BytecodeFinder("sample").find_spec("sample.beside", [str(package)])
    assert spec is not None
    loader = spec.loader
    first = loader.get_code("sample.beside")  # type: ignore[union-attr]
    (package / "beside.py").write_text("LONGER_THAN_BEFORE = 1_000_000\n")
    again = loader.get_code("sample.beside")  # type: ignore[union-attr]
    assert (first.co_names, again.co_names) == (("NAME",), ("LONGER_THAN_BEFORE",))


def test_the_import_system_gets_what_it_knows_better(package: Path) -> None:
    source = package / "beside.py"
    cached = package / f"__pycache__/beside.{sys.implementation.cache_tag}.pyc"

    def is_found() -> bool:
        return BytecodeFinder("sample").find_spec("sample.beside", [str(package)]) is not None

    assert is_found()
    whole = cached.read_bytes()
    for damage in (b"", whole[:10], whole[:20], b"\0" * 16 + whole[16:], whole[:16] + b"\0\0"):
        cached.write_bytes(damage)
        assert not is_found()
    cached.write_bytes(whole)
    assert is_found()
    os.utime(source, (1, 1))
    assert not is_found()
    py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    assert not is_found()
    py_compile.compile(str(source))
    assert is_found()
    source.unlink()
    assert not is_found()


def test_only_modules_of_the_package_are_found(package: Path) -> None:
    finder = BytecodeFinder("sample.inner")
    assert finder.find_spec("sample.inner.leaf", [str(package / "inner")]) is not None
    assert finder.find_spec("sample.beside", [str(package)]) is None
    assert finder.find_spec("sample", None) is None
    assert BytecodeFinder("sample").find_spec("sample.none", [str(package)]) is None


@pytest.mark.parametrize(
    ("option", "loader"), [("-B", "purebpf.cli.bytecode"), ("-O", "_frozen_importlib_external")]
)
def test_the_process_of_a_command_imports_from_bytecode(
    tmp_path: Path, option: str, loader: str
) -> None:
    folder = Path(__file__).parents[3] / "purebpf"
    (tmp_path / "purebpf/cli").mkdir(parents=True)
    for path in (*folder.glob("*.py"), *(folder / "cli").glob("*.py")):
        (tmp_path / "purebpf" / path.relative_to(folder)).write_bytes(path.read_bytes())
    assert compileall.compile_dir(tmp_path, quiet=1)
    command = [sys.executable, option, "-c", INSTALLED]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr.split() == [loader]
