"""The compiler's options in a tool's pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

import purebpf
from purebpf.build.options import read_options

TABLE = """[tool.purebpf.build]
includes = ["include"]
defines = {SLOTS = 16}
cpu = "v4"
optimise = "s"
"""


def write(directory: Path, text: str) -> str:
    (directory / "pyproject.toml").write_text(text)
    return str(directory)


def test_a_project_without_the_table_has_the_defaults_of_compile(tmp_path: Path) -> None:
    assert read_options(str(tmp_path)) == ([], {}, "v3", 2)
    assert read_options(write(tmp_path, "[project]\n")) == ([], {}, "v3", 2)


def test_the_table_is_read_and_headers_are_relative_to_the_project(tmp_path: Path) -> None:
    options = read_options(write(tmp_path, TABLE))
    assert options == ([str(tmp_path / "include")], {"SLOTS": 16}, "v4", "s")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("optimize = 2", "optimize: unknown option; known: includes, defines, cpu, optimise"),
        ('includes = "include"', "includes: expected an array, got 'include'"),
        ("optimise = true", "optimise: expected a number or a string, got True"),
    ],
)
def test_a_mistake_is_refused_by_name(line: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(purebpf.FormatError, match=why):
        read_options(write(tmp_path, f"[tool.purebpf.build]\n{line}\n"))
