"""The pages from which the API reference is made: of names, of commands, of options of attach."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import purebpf
from purebpf.commands import COMMANDS, package_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/api.md"
COMMANDS_PAGE = ROOT / "docs/api-commands.md"
ATTACH = ROOT / "docs/attach-options.md"


def test_every_public_name_has_its_place() -> None:
    listed = re.findall(r"^::: purebpf\.(\w+)$", PAGE.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted({*purebpf.__all__} - {"__version__"})


def test_every_name_of_a_command_has_its_place() -> None:
    listed = re.findall(
        r"^::: purebpf\.((?:(?:tools|services)\.)?\w+\.\w+)$",
        COMMANDS_PAGE.read_text(),
        re.MULTILINE,
    )
    packages = {name: import_module(package_of(name)) for name in COMMANDS}
    names = [
        f"{_home(command)}.{name}"
        for command, package in packages.items()
        for name in getattr(package, "__all__", ())
    ]
    assert {"tools.lock.Locks", "tools.trace.Traces", "tools.latency.CallLatency"} <= {*names}
    assert sorted(listed) == sorted(names)


def _home(command: str) -> str:
    """Return the module of a command, without `purebpf.`: some have a short name."""
    if (ROOT / f"purebpf/{command}.py").exists():
        return command
    return package_of(command).removeprefix("purebpf.")


def test_every_way_to_attach_has_its_place() -> None:
    modules = ROOT.glob("purebpf/loader/attach/*.py")
    ways = {path.stem for path in modules if "\ndef attach(" in path.read_text()} - {"__init__"}
    listed = re.findall(
        r"^::: purebpf\.loader\.attach\.(\w+)\.attach$", ATTACH.read_text(), re.MULTILINE
    )
    assert sorted(listed) == sorted(ways)
