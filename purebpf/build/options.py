"""The options of a build hook, which a tool's pyproject.toml has for `generate`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from typing import Any

from purebpf.errors import FormatError
from purebpf.tuples import NamedTuple

__all__ = ["BuildOptions", "parse_options", "read_options"]

_TABLE = "[tool.purebpf.build]"


class BuildOptions(NamedTuple):
    """The arguments of `generate` that are the same for every package of a project."""

    includes: list[str]
    defines: dict[str, object]
    cpu: str
    optimise: int | str


def read_options(root: str) -> BuildOptions:
    """Return the options in the table `[tool.purebpf.build]` of a project's pyproject.toml.

    Raises:
        FormatError: an option that does not exist, or a value of another type.
        OSError: the file cannot be read; a project without it has the defaults.
    """
    path = os.path.join(root, "pyproject.toml")
    try:
        with open(path, "rb") as file:
            project = tomllib.load(file)
    except FileNotFoundError:
        project = {}
    table = project.get("tool", {}).get("purebpf", {}).get("build", {})
    return parse_options(table, root, f"{path}, {_TABLE}")


def parse_options(table: Mapping[str, Any], root: str, source: str) -> BuildOptions:
    """The options of a table; `includes` are relative to the project's directory.

    Raises:
        FormatError: as `read_options`; names `source`.
    """
    for name, value in table.items():
        if name not in _TYPES:
            raise FormatError(source, name, f"unknown option; known: {', '.join(_TYPES)}")
        if not isinstance(value, _TYPES[name]) or isinstance(value, bool):
            wanted = " or ".join(_NAMES[kind] for kind in _TYPES[name])
            raise FormatError(source, name, f"expected {wanted}, got {value!r}")
    return BuildOptions(
        [os.path.join(root, directory) for directory in table.get("includes", ())],
        dict(table.get("defines", {})),
        table.get("cpu", "v3"),
        table.get("optimise", 2),
    )


_TYPES: dict[str, tuple[type, ...]] = {
    "includes": (list,),
    "defines": (dict,),
    "cpu": (str,),
    "optimise": (int, str),
}
_NAMES = {list: "an array", dict: "a table", str: "a string", int: "a number"}
