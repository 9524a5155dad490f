"""Packages explain themselves: no import cycle, one sentence each."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "purebpf"
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}
FOLDERS = sorted({path.parent for path in MODULES.values()})
UP_CALLS = {
    ("purebpf.btf.types.parse", "purebpf.btf.dump.declarations"),  # Btf.dump_c
    ("purebpf.loader.maps.map_base", "purebpf.loader.attach.struct_ops"),  # Map.attach
    ("purebpf.loader.programs.program", "purebpf.loader.attach"),  # Program.attach
    ("purebpf.loader.programs.program", "purebpf.loader.attach.query"),  # Program.query
}
"""Methods of public classes that act in a package above, imported when they are called."""


def imported(module: str) -> Iterator[str]:
    """Our modules that a module imports, in functions and for type checking too."""
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in MODULES else node.module for name in names)


def test_no_module_imports_itself_through_others():
    graph = {
        module: {
            name
            for name in imported(module)
            if name not in (module, "purebpf") and (module, name) not in UP_CALLS
        }
        for module in MODULES
        if module != "purebpf"  # the facade of lazily imported names
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' <- '.join(error.args[1])}")


def test_every_up_call_is_still_made():
    assert {(above, below) for above, below in UP_CALLS if below in set(imported(above))} == (
        UP_CALLS
    )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_package_says_what_it_is(folder: Path):
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    assert text, "no docstring"
    assert text.splitlines()[0].endswith((".", ":"))


def test_attach_modules_attach():
    names = {path.stem for path in (PACKAGE / "loader/attach").glob("[!_]*.py")} - {"query"}
    missing = {
        name
        for name in names
        if not callable(getattr(import_module(f"purebpf.loader.attach.{name}"), "attach", None))
    }
    assert not missing
