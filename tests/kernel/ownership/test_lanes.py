"""Two processes share the live tests, and neither takes what the other does for a leak."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from purebpf.syscall import bpf
from tests import conftest
from tests.support import probes, traces
from tests.support.lanes import Lane, beside, held_by_others

pytestmark = [pytest.mark.needs("bpf"), pytest.mark.any_kernel]

ROOT = Path(__file__).resolve().parents[3]

_FILE = """
import time
import pytest

@pytest.fixture(scope="module", autouse=True)
def whole():
    yield

def test_one(): time.sleep(0.05)
@pytest.mark.alone
def test_alone(): time.sleep(0.05)
def test_last(): time.sleep(0.05)
"""

_HOLDER = """
import subprocess, sys
from purebpf.syscall import bpf
with bpf.map_create(2, 4, 4, 1) as array:
    if sys.argv[1:] == ["child"]:
        wait = [sys.executable, "-c", "print('held', flush=True); input()"]
        holder = subprocess.Popen(wait, env={}, pass_fds=[array.fileno()])
    else:
        print("held", flush=True)
        input()
if sys.argv[1:] == ["child"]:
    holder.wait()
"""


def test_each_file_runs_once_and_what_is_alone_has_no_other_beside_it(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  needs\n  alone\n")
    for number in range(6):
        file = tmp_path / "tests" / "kernel" / f"folder{number % 2}" / f"test_{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_FILE)
    shared = tmp_path / "lanes"
    shared.mkdir()
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest"]
    line += ["--import-mode=importlib"]
    kept = {name: value for name, value in os.environ.items() if name != "PUREBPF_KERNEL"}
    kept |= {"PYTHONPATH": str(ROOT), "PUREBPF_LANES": str(shared), "PUREBPF_EXCLUSIVE_HOST": "1"}
    lanes = [
        subprocess.Popen(
            [*line, f"--junitxml={tmp_path}/{number}.xml", "tests"],
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=kept | {"PUREBPF_LANE": number},
        )
        for number in "12"
    ]
    said = [lane.communicate(timeout=120)[0] for lane in lanes]
    assert [lane.returncode for lane in lanes] == [0, 0], said
    ran = [file.read_text().splitlines() for file in sorted(shared.glob("turns *"))]
    assert len(ran) == 2
    tests = Counter(line.split(" ", 3)[3] for lines in ran for line in lines)
    assert set(tests.values()) == {1}
    assert len(tests) == 18
    together = beside(shared, tests)
    assert not any(others for test, others in together.items() if "alone" in test)
    assert any(together.values())


@contextmanager
def _held_elsewhere(holder: str) -> Iterator[None]:
    """A map that a process of another lane holds, or its child without an environment."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, holder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PUREBPF_LANE": "another"},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.communicate("\n")


def _maps(left: list[str]) -> list[str]:
    return [each for each in left if each.startswith("map ")]


@pytest.mark.alone
@pytest.mark.parametrize("holder", ["itself", "child"])
def test_a_leak_is_told_from_what_another_lane_holds(
    holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUREBPF_LANE", os.environ.get("PUREBPF_LANE", "1"))
    monkeypatch.setattr(conftest, "_PATIENCE_S", 0.5)
    before = traces.left()
    with _held_elsewhere(holder):
        (held,) = {str(each) for each in probes.kernel_objects()["map"]} - before["map"]
        assert held in held_by_others()["map"]
        assert not _maps(conftest._stays(before, None))
        with bpf.map_create(2, 4, 4, 1):
            (own,) = _maps(conftest._stays(before, None))
        assert own != f"map {held}"


def test_a_leak_is_waited_for_as_long_as_a_test_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUREBPF_LANE", os.environ.get("PUREBPF_LANE", "1"))
    monkeypatch.setattr(conftest, "_PATIENCE_S", 0)
    before = traces.left()
    asked = iter([{"7 tests/of_another.py::test_long"}] * 3)
    monkeypatch.setattr(Lane, "others", lambda _: next(asked, set()))
    with closing(Lane(tmp_path, 1)) as lane, bpf.map_create(2, 4, 4, 1):
        assert _maps(conftest._stays(before, lane))
    assert not list(asked)
