"""The CPythons of this machine: on the PATH, and those of pyenv."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.host.faults import slow_host

__all__ = ["FREQUENCY", "Python", "every", "newest", "params", "with_gil"]

FREQUENCY = 199 if slow_host() else 499
"""Samples a second: a kernel that takes long for each lowers what it allows."""

_NAME = re.compile(r"python3\.(\d+)t?")  # t: without a GIL
_WITHOUT = "import sysconfig; print(sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"


class Python(NamedTuple):
    """An interpreter, by its version."""

    version: tuple[int, int]
    path: str

    @property
    def has_gil(self) -> bool:
        """Whether it was built with one."""
        return self.version < (3, 13) or not int(_said(self.path, _WITHOUT))


@cache
def _said(path: str, program: str) -> str:
    return subprocess.check_output([path, "-c", program], text=True)


@cache
def every() -> list[Python]:
    """All of them from 3.8 on, one of each place, by version."""
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    found = [*root.glob("versions/3.*/bin/python3.*")]
    for minor in range(8, 20):
        paths = map(shutil.which, (f"python3.{minor}", f"python3.{minor}t"))
        # shims may lead nowhere
        found += [Path(path) for path in paths if path and Path(path).parent != root / "shims"]
        if Path(f"/usr/bin/python3.{minor}").exists():
            found.append(Path(f"/usr/bin/python3.{minor}"))
    named = {Path(each).resolve(): _NAME.fullmatch(each.name) for each in found}
    pythons = [Python((3, int(name[1])), str(each)) for each, name in named.items() if name]
    return sorted(python for python in pythons if python.version >= (3, 8))


def with_gil() -> list[Python]:
    """The same, but for builds without a GIL."""
    return [python for python in every() if python.has_gil]


def params(pythons: Iterable[Python] | None = None) -> list[object]:
    """Interpreters for `pytest.mark.parametrize`, `every` by default.

    By day the oldest, the newest, and the one that runs the tests; the others at night.
    """
    chosen = every() if pythons is None else list(pythons)
    own = Path(sys.executable).resolve()
    by_day = {*chosen[:1], *chosen[-1:], *(each for each in chosen if _file(each) == own)}
    return [
        pytest.param(
            each,
            id=f"{each.version[1]}-{each.path}",
            marks=() if each in by_day else pytest.mark.nightly,
        )
        for each in chosen
    ]


def _file(python: Python) -> Path:
    return Path(python.path).resolve()


@cache
def newest() -> Python | None:
    """The interpreter with the highest version from 3.11 on."""
    return max((python for python in with_gil() if python.version >= (3, 11)), default=None)
