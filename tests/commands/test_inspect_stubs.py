"""`python -m purebpf.inspect --stubs`: mypy --strict knows an object's maps, globals and fields."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT
from tests.support.type_check import mypy

pytestmark = pytest.mark.any_kernel

USER = """
from load_counter import load


def use(path: str) -> int:
    with load(path) as obj:
        obj.globals["target_pid"] = 1
        obj.programs["count_calls"].attach()
        for key, call in obj.maps["calls"].items():
            print(key.bit_length(), call.total + call.last_cpu)
        obj.maps["calls"][3] = {"total": 1}
        return obj.maps["calls"][3].total + obj.globals["calls_seen"]
"""

RINGS = """
import sampleip
import stream_calls


def use(path: str) -> int:
    with stream_calls.load(path) as obj, obj.maps["moments"].reader(lost=lambda: 0) as ring:
        print(ring.drain_numpy(), [view.nbytes for view in ring.views()])
    with sampleip.load(path) as obj2, obj2.maps["events"].reader(pages=8) as buffer:
        return buffer.lost
"""

MISTAKES = {
    'obj.maps["calls"][3].totl': 'has no attribute "totl"',
    'obj.maps["calls"]["three"]': "Invalid index type",
    'obj.globals["step"].upper()': 'has no attribute "upper"',
}


def stubs(name: str, folder: Path) -> Path:
    path = folder / (Path(name).name.partition(".")[0] + ".py")
    command = [sys.executable, "-m", "purebpf.inspect", name, "--stubs", "-o", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mypy")
    found = tmp_path_factory.mktemp("stubs")
    stubs("tests/data/load_counter.bpf.o", found)
    return found


def test_a_user_of_the_module_is_checked(folder: Path) -> None:
    user = folder / "user.py"
    user.write_text(USER)
    assert mypy(folder, user).startswith("Success")
    wrong = "".join(f"    {line}\n" for line in MISTAKES)
    user.write_text(f"{USER}\n\nwith load('x') as obj:\n{wrong}")
    said = mypy(folder, user)
    assert f"Found {len(MISTAKES)} errors" in said
    for problem in MISTAKES.values():
        assert problem in said, said


def test_a_ring_has_a_reader_of_its_kind(folder: Path) -> None:
    for name in ("tests/data/stream_calls.bpf.o", "purebpf/objects/sampleip.bpf.o"):
        stubs(name, folder)
    user = folder / "rings.py"
    user.write_text(RINGS)
    said = mypy(folder, user)
    assert said.startswith("Success"), said


def test_every_kind_of_object_has_a_module_that_checks(folder: Path) -> None:
    names = ["purebpf/objects/summary.bpf.o", "purebpf/objects/profile.bpf.o"]
    names += [
        "tests/data/elf_maps.bpf.o",
        "tests/data/elf_no_btf.bpf.o",
        "tests/data/elf_data.bpf.o",
    ]
    made = [stubs(name, folder) for name in names]
    assert mypy(folder, *made).startswith("Success")


@pytest.mark.needs("bpf")
def test_the_module_loads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    import load_counter

    with load_counter.load(ROOT / "tests/data/load_counter.bpf.o") as obj:
        obj.maps["calls"][3] = {"total": 4, "last_cpu": 1}
        assert obj.maps["calls"][3].total == 4
        assert isinstance(obj.globals["step"], int)
