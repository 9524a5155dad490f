"""The rubies of this machine: the one on the path, and those of roots that PUREBPF_RUBIES names."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

__all__ = ["command", "default", "every", "params", "release"]


def every() -> list[Path]:
    """Each ruby once."""
    return sorted({*_asked(), *default()})


def default() -> list[Path]:
    """The `ruby` on the path; none if there is none."""
    ruby = shutil.which("ruby")
    return [Path(ruby)] if ruby else []


def params() -> list[object]:
    """`every` for `pytest.mark.parametrize`."""
    return [pytest.param(each, id=str(each)) for each in every()]


def command(ruby: Path) -> list[str]:
    """The command that runs a ruby; one that PUREBPF_RUBIES names runs with its own libraries."""
    if ruby in default():
        return [str(ruby)]
    root = ruby.parents[2]
    loader = root / "lib64/ld-linux-x86-64.so.2"
    libraries = ":".join(str(root / each) for each in ("usr/lib/x86_64-linux-gnu", "usr/lib"))
    return [str(loader), "--library-path", libraries, str(ruby), "--disable-gems"]


@cache
def release(ruby: Path) -> tuple[int, int]:
    """Return the version, (3, 1)."""
    line = [*command(ruby), "-e", "print RUBY_VERSION"]
    text = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    major, minor, _ = text.split(".")
    return int(major), int(minor)


def _asked() -> list[Path]:
    """The programs that PUREBPF_RUBIES names, with colons between them."""
    return [Path(each) for each in os.environ.get("PUREBPF_RUBIES", "").split(":") if each]
