"""pyright passes the examples, as mypy does: their types are what a user's editor shows."""

from __future__ import annotations

from pathlib import Path

from tests.support.oracles.type_check import ROOT, pyright


def test_pyright_has_nothing_against_the_examples(tmp_path: Path) -> None:
    files = sorted((ROOT / "examples").rglob("*.py"))
    assert len(files) > 10
    assert pyright(tmp_path, *files) == set()


def test_pyright_sees_a_misspelt_map_and_argument(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import purebpf\npurebpf.lod()\npurebpf.read_object('x').resise(a=1)\n")
    assert pyright(tmp_path, wrong) == {(wrong, 2), (wrong, 3)}
