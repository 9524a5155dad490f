"""The nodes of this machine: the one on the path, those in build/nodes, those of PUREBPF_NODES."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["default", "every", "params", "v8_version"]

_ROOT = Path(__file__).parents[3]


def every() -> list[Path]:
    """Each node once: those that PUREBPF_NODES names, those of packages, and the machine's."""
    return sorted({each.resolve() for each in (*_asked(), *_packaged(), *default())})


def default() -> list[Path]:
    """The `node` on the path; none if there is none."""
    node = shutil.which("node")
    return [Path(node).resolve()] if node else []


def v8_version(node: Path) -> tuple[int, int]:
    """The version of a node's V8, such as (13, 6)."""
    command = [node, "-p", "process.versions.v8"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    major, minor, *_ = text.split(".")
    return int(major), int(minor)


def params() -> list[object]:
    """`every` for `pytest.mark.parametrize`: by day the default one, and those asked for."""
    by_day = {each.resolve() for each in (*default(), *_asked())}
    return [
        pytest.param(each, id=_name(each), marks=() if each in by_day else pytest.mark.nightly)
        for each in every()
    ]


def _asked() -> list[Path]:
    return [Path(each) for each in os.environ.get("PUREBPF_NODES", "").split(":") if each]


def _packaged() -> list[Path]:
    """What `nodes_for_tests` of scripts/packages.sh has installed."""
    return list((_ROOT / "build/nodes").glob("*/bin/node"))


def _name(node: Path) -> str:
    """The version in the path of a package, or the path."""
    return node.parts[-3] if node.parts[-2] == "bin" and node.parts[-3] != "usr" else str(node)
