"""docs/api.md and docs/attach-options.md, from which the API reference is made."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import purebpf

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/api.md"
ATTACH = ROOT / "docs/attach-options.md"


def test_every_public_name_has_its_place() -> None:
    listed = re.findall(r"^::: purebpf\.(\w+)$", PAGE.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted({*purebpf.__all__} - {"__version__"})


def test_every_name_of_a_command_has_its_place() -> None:
    listed = re.findall(r"^::: purebpf\.(\w+\.\w+)$", PAGE.read_text(), re.MULTILINE)
    rooms = {path.parent.name for path in ROOT.glob("purebpf/*/__main__.py")} - {"report"}
    packages = {room: import_module(f"purebpf.{room}") for room in rooms}
    names = [
        f"{room}.{name}"
        for room, package in packages.items()
        for name in getattr(package, "__all__", ())
    ]
    assert {"lock.Locks", "trace.Traces", "latency.CallLatency"} <= {*names}
    assert sorted(listed) == sorted(names)


def test_every_way_to_attach_has_its_place() -> None:
    modules = ROOT.glob("purebpf/kernel/attach/*.py")
    ways = {path.stem for path in modules if "\ndef attach(" in path.read_text()} - {"__init__"}
    listed = re.findall(
        r"^::: purebpf\.kernel\.attach\.(\w+)\.attach$", ATTACH.read_text(), re.MULTILINE
    )
    assert sorted(listed) == sorted(ways)
