"""The JVMs of this machine: JDKs in /usr/lib/jvm, others in the folders of PUREBPF_JVMS."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

__all__ = ["default", "every", "golden_of", "major", "params"]

_ROOT = Path(__file__).parents[3]


def every() -> list[Path]:
    """Each Java home with a libjvm.so, once: those that PUREBPF_JVMS names, and the machine's."""
    folders = [*_asked(), *sorted(Path("/usr/lib/jvm").glob("*")), *default()]
    homes = {each.resolve() for each in folders if _library(each) is not None}
    return sorted(homes)


def default() -> list[Path]:
    """The home of the `java` on the path; none if there is none."""
    java = shutil.which("java")
    return [Path(java).resolve().parents[1]] if java else []


def golden_of(home: Path) -> dict[str, int] | None:
    """The layout that is expected of the version of a Java home; None: it has none."""
    path = _ROOT / "tests/data/hotspot" / f"{major(home)}.json"
    return json.loads(path.read_text()) if path.exists() else None


def major(home: Path) -> int:
    """The version of a Java home, such as 21."""
    lines = (home / "release").read_text().splitlines()
    version = next(each for each in lines if each.startswith("JAVA_VERSION="))
    return int(version.split(chr(34))[1].partition(".")[0])


def params() -> list[object]:
    """`every` for `pytest.mark.parametrize`: by day the default one, and those asked for."""
    by_day = {each.resolve() for each in (*default(), *_asked())}
    return [
        pytest.param(each, id=each.name, marks=() if each in by_day else pytest.mark.nightly)
        for each in every()
    ]


def _asked() -> list[Path]:
    return [Path(each) for each in os.environ.get("PUREBPF_JVMS", "").split(":") if each]


def _library(home: Path) -> Path | None:
    return next((path for path in home.glob("lib/**/libjvm.so")), None)
