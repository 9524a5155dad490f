"""An option has one default: a command line and the library measure the same."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.util import find_spec

import pytest

import purebpf.tools

TOOLS = [
    module.name
    for module in pkgutil.iter_modules(purebpf.tools.__path__)
    if all(find_spec(f"purebpf.tools.{module.name}.{part}") for part in ("request", "options"))
    and hasattr(import_module(f"purebpf.tools.{module.name}.request"), "Options")
]


def test_tools_are_found() -> None:
    assert {"profile", "latency", "lock", "kwork", "io"} <= {*TOOLS}


@pytest.mark.parametrize("tool", TOOLS)
def test_defaults_are_the_ones_of_the_options_type(tool: str) -> None:
    """An empty value of the parser may mean another default: the command decides it later."""
    parser = import_module(f"purebpf.tools.{tool}.options").build_parser()
    defaults = import_module(f"purebpf.tools.{tool}.request").Options._field_defaults
    given = {
        action.dest: action.default
        for action in parser._actions
        if action.dest in defaults and action.default not in (None, "", [])
    }
    assert given == {name: defaults[name] for name in given}
