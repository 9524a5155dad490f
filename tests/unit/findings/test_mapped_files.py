"""Page faults of programs that open and map a file again and again, as dlopen(3) does."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import CallCount, PathCount, Process
from purebpf.findings.find import find
from tests.support.builders.facts import facts, native, running

EXE, PLUGIN = "/srv/filterd", "/srv/plugins/filter.so"


def texts(opens: int, maps: int = 40_000) -> list[str]:
    process = Process(7, 1, "filterd", EXE, minor_faults=200_000, cpu_s=3.0)
    calls = (CallCount(7, "mmap", 0, maps), CallCount(7, "openat", 0, opens))
    paths = (PathCount(7, "openat", PLUGIN, opens),)
    measured = facts(
        running(7, 7, native("run_filters", EXE)), processes=(process,), calls=calls, paths=paths
    )
    return ["; ".join((one.text, *one.evidence)) for one in find(measured)]


def test_the_file_that_is_mapped_is_named() -> None:
    (text,) = (one for one in texts(10_000) if "has 20000 page faults a second" in one)
    assert f"it opens and maps {PLUGIN} 1000 times a second" in text


@pytest.mark.parametrize("opens", [1000, 200])
def test_files_that_are_opened_beside(opens: int) -> None:
    assert not any("opens and maps" in text for text in texts(opens))
