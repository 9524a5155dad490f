"""The CPythons of this machine: on the PATH, and those of pyenv."""

from __future__ import annotations

import os
import re
import shutil
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["Python", "newest"]

_NAME = re.compile(r"python3\.(\d+)")


class Python(NamedTuple):
    """An interpreter, by its version."""

    version: tuple[int, int]
    path: str


@cache
def newest() -> Python | None:
    """The interpreter with the highest version."""
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    found = [*root.glob("versions/3.*/bin/python3.*")]
    for minor in range(11, 20):
        path = shutil.which(f"python3.{minor}")
        if path and Path(path).parent != root / "shims":  # which may lead nowhere
            found.append(Path(path))
    named = [(name, each) for each in found if (name := _NAME.fullmatch(each.name))]
    return max((Python((3, int(name[1])), str(each)) for name, each in named), default=None)
