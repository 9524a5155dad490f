"""The public names and signatures are a promise: a change is a decision, with a CHANGELOG line.

python tests/meta/test_public_api.py > tests/meta/public_api.txt      after deciding
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NewType, get_origin

import pytest

import purebpf

SNAPSHOT = Path(__file__).with_name("public_api.txt")
FACADE = Path(purebpf.__file__)


def _signature(value: Callable[..., object]) -> str:
    """Its signature, without the addresses of sentinels."""
    return re.sub(r"<object object at 0x[0-9a-f]+>", "...", str(inspect.signature(value)))


def described() -> Iterator[str]:
    """One line for each public name, and for each public attribute of a public class."""
    for name in sorted(purebpf.__all__):
        if name != "__version__":
            yield from _describe(name, getattr(purebpf, name))


def _describe(name: str, value: object) -> Iterator[str]:
    if isinstance(value, ModuleType):
        yield f"{name}: module {value.__name__}"
        for attribute in sorted(getattr(value, "__all__", ())):
            yield from _describe(f"{name}.{attribute}", getattr(value, attribute))
    elif get_origin(value) is not None:
        yield f"{name} = {value}"
    elif isinstance(value, NewType):
        yield f"{name} = NewType({value.__supertype__.__name__})"
    elif inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__)
        yield f"{name}: class({bases})"
        yield from _members(name, value)
    elif callable(value):
        yield f"{name}{_signature(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


def _members(name: str, cls: type) -> Iterator[str]:
    if hasattr(cls, "__members__"):  # an enum, or one of purebpf.enums
        yield from (f"{name}.{member}" for member in cls.__members__)
        return
    for attribute in sorted({"__init__", *vars(cls)}):
        if attribute.startswith("_") and attribute != "__init__":
            continue
        value = inspect.getattr_static(cls, attribute)
        if isinstance(value, property):
            yield f"{name}.{attribute}: property"
        elif isinstance(value, classmethod | staticmethod):
            yield f"{name}.{attribute}{_signature(getattr(cls, attribute))}"
        elif inspect.isfunction(value):
            yield f"{name}.{attribute}{_signature(value)}"
        elif attribute != "__init__":
            yield f"{name}.{attribute}"


def test_public_names_and_signatures_are_as_promised():
    now, promised = list(described()), SNAPSHOT.read_text().splitlines()
    assert now == promised, "a public name or signature changed; decide, then see the docstring"


def test_the_facade_says_the_same_to_type_checkers_and_at_run_time():
    tree = ast.parse(FACADE.read_text())
    (hidden,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )
    imported = {}
    for node in ast.walk(hidden):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    assert {*imported, "__version__"} == set(purebpf.__all__)
    for name, home in imported.items():
        value = getattr(purebpf, name)
        if isinstance(value, ModuleType):
            assert value.__name__ == home
        else:
            assert f"{value.__module__}.{value.__name__}".startswith(home.rpartition(".")[0])


def test_dir_lists_the_public_names():
    assert set(purebpf.__all__) <= set(dir(purebpf))


def test_a_misspelt_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'purebpf' has no attribute 'lod'"):
        _ = purebpf.lod


def test_importing_purebpf_imports_nothing_heavy():
    code = "import sys, purebpf; print(*sorted(m for m in sys.modules if m.startswith('purebpf')))"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert found == ["purebpf", "purebpf._version", "purebpf.lazy", "purebpf.safe_path"]


def test_loading_an_object_imports_no_library_that_is_slow_to_import():
    code = (
        "import sys, purebpf; purebpf.load; purebpf.read_object; purebpf.PerfEvent;"
        "print(*({'pyroute2', 'construct', 'asyncio', 'subprocess', 'demangle'} & {*sys.modules}))"
    )
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert found == []


if __name__ == "__main__":
    print(*described(), sep="\n")
