"""Build one file that runs a script wherever Python 3.11 or newer is."""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import re
import zipfile
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pkgutil import iter_modules

from purebpf import objects
from purebpf.errors import PurebpfError
from purebpf.script import tree
from purebpf.script.parser import parse

__all__ = ["build_archive", "list_modules"]

_ROOT = "purebpf.tools.script.built"
_PACKAGES = ("purebpf", "elftools", "construct", "demangle")
_WALK = "purebpf.measure.stacks.linked_stacks"
"""The module of whole user stacks, and all that only it imports: for scripts with `ustack`."""
_WALK_OBJECT = "stack_library.spec"
_WHOLE = ("purebpf.loader.attach", "purebpf.asm")
"""Packages whose modules are imported by names that are made at run time."""
_MAIN = """import sys

if sys.version_info < (3, 11):
    sys.exit("this program needs Python 3.11 or newer")
from purebpf.tools.script.built import run_built

sys.exit(run_built({name!r}, {text!r}, sys.argv[1:]))
"""
_SOURCES = (".py", ".pyc")
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\S+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([^\n#;]*))",
    re.MULTILINE,
)
_NAME = re.compile(r"\w+")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def build_archive(text: str, name: str) -> bytes:
    """Return a zip archive that Python runs: a script, and the modules that running it may import.

    The script is compiled where it runs, for that kernel's types. The archive has no date.

    Args:
        text: the script.
        name: of its file.

    Raises:
        PurebpfError: a module has no source here, as in a frozen program.
    """
    has_walk = _walks_user_stacks(text)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in sorted(_files(list_modules(has_walk=has_walk), has_walk=has_walk)):
            archive.writestr(zipfile.ZipInfo(path, _EPOCH), content, zipfile.ZIP_DEFLATED)
        main = _MAIN.format(name=name, text=text)
        archive.writestr(zipfile.ZipInfo("__main__.py", _EPOCH), main, zipfile.ZIP_DEFLATED)
    return b"#!/usr/bin/env python3\n" + data.getvalue()


def _walks_user_stacks(text: str) -> bool:
    return any(
        isinstance(node, tree.Name | tree.Call) and node.name in ("ustack", "dw_ustack")
        for node in tree.walk(parse(text))
    )


def list_modules(*, has_walk: bool) -> dict[str, ModuleSpec]:
    """Return the modules that a run may import, also late, by name, and the walk's if asked."""
    reached: dict[str, ModuleSpec] = {}
    waiting = [_ROOT]
    for package in map(importlib.import_module, _WHOLE):
        waiting += [f"{package.__name__}.{item.name}" for item in iter_modules(package.__path__)]
    while waiting:
        name = waiting.pop()
        if name in reached or name.partition(".")[0] not in _PACKAGES:
            continue
        if name == _WALK and not has_walk:
            continue
        spec = _find(name)
        if spec is None:  # `from package import function`
            continue
        reached[name] = spec
        waiting.append(name.rpartition(".")[0])
        waiting += _imports(_source(spec), name, is_package=bool(spec.submodule_search_locations))
    return reached


def _find(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None


def _source(spec: ModuleSpec) -> str:
    get = getattr(spec.loader, "get_source", None)
    source = get(spec.name) if get is not None else None
    if source is None:
        if spec.origin is not None and not spec.origin.endswith(_SOURCES):
            return ""  # a compiled module; its package has a slower one beside it
        raise PurebpfError(f"{spec.name} has no source here: build from an installed purebpf")
    return str(source)


def _imports(source: str, name: str, *, is_package: bool) -> Iterator[str]:
    """Yield the names that the import statements of a module may mean, also names of no module."""
    package = name.split(".") if is_package else name.split(".")[:-1]
    for base, names, modules in _IMPORT.findall(source):
        if modules:
            yield from (item.split()[0] for item in modules.split(",") if item.strip())
            continue
        dots = len(base) - len(base.lstrip("."))
        parents = package[: len(package) - dots + 1] if dots else []
        module = ".".join([*parents, *filter(None, [base.lstrip(".")])])
        yield module
        yield from (f"{module}.{item}" for item in _NAME.findall(names))


def _files(modules: dict[str, ModuleSpec], *, has_walk: bool) -> Iterator[tuple[str, bytes]]:
    """Yield the paths in the archive, and the contents of modules and of their packages' tables."""
    for name, spec in modules.items():
        path = name.replace(".", "/")
        if not spec.submodule_search_locations:
            yield f"{path}.py", _source(spec).encode()
            continue
        yield f"{path}/__init__.py", _source(spec).encode()
        if name == "purebpf.objects":
            if has_walk:
                yield f"{path}/{_WALK_OBJECT}", objects.read(_WALK_OBJECT)
            continue
        for folder in spec.submodule_search_locations:
            for file in os.scandir(folder) if os.path.isdir(folder) else ():
                if file.is_file() and not file.name.endswith((*_SOURCES, ".so", ".pyi", ".typed")):
                    with open(file, "rb") as content:
                        yield f"{path}/{file.name}", content.read()
