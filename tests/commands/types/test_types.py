"""Live runs of `purebpf types` on a program that knows its own phases."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from purebpf.symbols.elf_image import ElfImage
from tests.commands.conftest import ROOT

pytest.importorskip("iced_x86", reason="the extra purebpf[types] is not installed")

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")

SOURCE = Path(__file__).with_name("phases.c")


@pytest.fixture(scope="module")
def phases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, with DWARF."""
    target = tmp_path_factory.mktemp("phases") / "phases"
    subprocess.run(["gcc", "-g", "-O2", "-o", target, SOURCE], check=True, timeout=120)
    return target


def types(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "purebpf", "types", *arguments],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=120,
    )  # fmt: skip


def test_members_have_the_time_of_their_phases(phases: Path) -> None:
    run = types("--format", "json", "-F", "1999", "--", str(phases))
    assert run.returncode == 0, run.stderr
    records = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    box = next(record for record in records if record.get("struct") == "box")
    members = {member["name"]: member for member in box["members"]}
    assert set(members) == {"sum", "cells[]"}, members
    assert members["sum"]["offset"] == 128
    assert members["sum"]["functions"].keys() == {"count"}
    assert members["cells[]"]["offset"] == 144
    assert members["cells[]"]["functions"].keys() == {"add"}
    assert members["sum"]["writes"] == members["sum"]["samples"]
    assert members["cells[]"]["writes"] == 0
    total = records[-1]
    assert total["typed"] == box["samples"] + sum(
        record["samples"] for record in records[:-1] if record is not box
    )
    assert total["samples"] == total["typed"] + sum(total["untyped"].values())
    for name, share in zip(("sum", "cells[]"), _own_shares(run.stdout), strict=True):
        deviation = math.sqrt(share * (1 - share) / total["samples"])
        assert members[name]["samples"] / total["samples"] <= share + 6 * deviation, name
    assert box["samples"] > total["samples"] / 2, total


C, CPP = ("-x", "c", "six.c"), ("-x", "c++", "six.c")
COMPILERS = {
    "gcc": ("gcc", "-g", "-O2", *C),
    "clang": ("clang-19", "-g", "-O2", *C),
    "LTO": ("gcc", "-g", "-O2", "-flto", *C),
    "g++": ("g++", "-g", "-O2", *CPP),
    "clang++": ("clang++-19", "-g", "-O2", *CPP),
    "rust": ("rustc", "-g", "-C", "opt-level=2", "six.rs"),
}
POINTS = 0.02
"""The largest error: a phase also reads the place of its member."""
POINTS_WRITTEN = 0.05
"""Instructions without memory wait for the store buffer, too."""
WRITER = "fill"
"""Writes its member. When the CPU's store buffer is full, its load of the next place waits."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "gcc" else pytest.mark.nightly) for name in COMPILERS],
)
def test_each_member_has_the_cpu_time_of_its_phase(name: str, tmp_path: Path) -> None:
    command = COMPILERS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    *words, source = command
    target = tmp_path / "six"
    subprocess.run(
        [*words, "-o", target, SOURCE.with_name(source)], check=True, timeout=120, text=True
    )
    run = types("--format", "json", "-F", "1999", "--", str(target))
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    *records, total = [json.loads(line) for line in lines if line.startswith("{")]
    found = {
        member["name"]: member["samples"] / total["samples"]
        for record in records
        if record["struct"].rpartition("::")[2].lower() in ("item", "row")
        for member in record["members"]
    }
    places = sum(
        samples / total["samples"]
        for record in records
        if record["struct"] in ("unsigned int", "u32")
        for member in record["members"]
        for function, samples in member["functions"].items()
        if function.rpartition("::")[2].startswith(WRITER)
    )
    assert places < found["left"] / 2, (places, found)
    found["left"] += places
    phases = dict(line.split()[1:] for line in lines if line.startswith("phase "))
    for member, share in phases.items():
        deviation = math.sqrt(float(share) * (1 - float(share)) / total["samples"])
        error = abs(found.get(member, 0) - float(share))
        points = POINTS_WRITTEN if member == "left" else POINTS
        assert error <= points + 3 * deviation, (member, share, found, run.stderr)


def _own_shares(text: str) -> list[float]:
    (line,) = (line for line in text.splitlines() if not line.startswith("{"))
    return [float(word) for word in line.split()]


@pytest.mark.nightly  # the same path as the table; its text has a unit test
def test_a_layout_is_printed_with_its_heat(phases: Path) -> None:
    run = types("--struct", "box", "--", str(phases))
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    (head,) = (line for line in lines if line.startswith("box: "))
    assert head.startswith("box: 408 bytes, 7 cache lines, ")
    (cells,) = (line for line in lines if line.endswith(" cells"))
    assert cells.split()[-5:-2] == ["144", "256", "r"]
    assert any(line.split()[-2:] == ["4", "(hole)"] for line in lines)


def test_a_program_without_types_has_a_reason(
    phases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # it has the same build ID
    plain = tmp_path / "plain"
    subprocess.run(["strip", "-o", plain, phases], check=True)
    run = types("--", str(plain))
    assert run.returncode == 0, run.stderr
    assert "no DWARF (compile with -g" in run.stderr
    assert " box" not in run.stdout


def test_split_types_are_read_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same samples before, while and after the .dwo file is away."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    built, data = tmp_path / "phases", tmp_path / "perf.data"
    command = ["gcc", "-g", "-gsplit-dwarf", "-O2", "-o", built, SOURCE]
    subprocess.run(command, check=True, timeout=120, cwd=tmp_path)
    record = [sys.executable, "-m", "purebpf", "record", "-F", "499", "-o", data, "--", built]
    subprocess.run(record, check=True, capture_output=True, cwd=ROOT, timeout=120)
    (part,) = tmp_path.glob("*.dwo")
    away = part.rename(tmp_path / "away")
    without = types("-i", str(data), "--format", "csv")
    assert "split DWARF: the .dwo file of the unit is not there" in without.stderr
    assert "box" not in without.stdout
    away.rename(part)
    found = types("-i", str(data), "--format", "csv")
    assert {line.split(",")[2] for line in found.stdout.splitlines() if "box," in line} == {
        "sum", "cells[]",
    }, found.stderr  # fmt: skip
    part.rename(tmp_path / "away")
    assert types("-i", str(data), "--format", "csv").stdout == found.stdout  # from the cache


def test_types_come_from_a_debuginfod_server(
    phases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plain, debug, data = (tmp_path / name for name in ("plain", "debug", "perf.data"))
    subprocess.run(["objcopy", "--only-keep-debug", phases, debug], check=True)
    subprocess.run(["strip", "-o", plain, phases], check=True)
    build_id = ElfImage.of_bytes(plain.read_bytes()).build_id
    folder = tmp_path / "served" / "buildid" / build_id
    folder.mkdir(parents=True)
    debug.rename(folder / "debuginfo")
    record = [sys.executable, "-m", "purebpf", "record", "-F", "499", "-o", data, "--", plain]
    subprocess.run(record, check=True, capture_output=True, cwd=ROOT, timeout=120)
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path / "served")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        monkeypatch.setenv("DEBUGINFOD_URLS", f"http://127.0.0.1:{server.server_port}/")
        without = types("-i", str(data), "--format", "csv")
        found = types("-i", str(data), "--format", "csv", "--debuginfod")
        server.shutdown()
    assert "box" not in without.stdout
    assert "no DWARF" in without.stderr
    assert {line.split(",")[2] for line in found.stdout.splitlines() if "box," in line} == {
        "sum", "cells[]",
    }, found.stderr  # fmt: skip


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang-19", marks=pytest.mark.nightly)])
def test_recorded_faults_belong_to_the_member_that_faulted(tmp_path: Path, compiler: str) -> None:
    """A page fault points at its own instruction, so that every one of them is attributed."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    target, data = tmp_path / "faults", tmp_path / "perf.data"
    subprocess.run(
        [compiler, "-g", "-O2", "-o", target, SOURCE.with_name("faults.c")], check=True, timeout=120
    )
    words = ("record", "-e", "page-faults", "-c", "1", "-o", str(data), "--", str(target))
    subprocess.run(
        [sys.executable, "-m", "purebpf", *words],
        check=True, cwd=ROOT, timeout=120, capture_output=True,
    )  # fmt: skip
    run = types("-i", str(data), "--format", "json")
    assert run.returncode == 0, run.stderr
    records = [json.loads(line) for line in run.stdout.splitlines()]
    page = next(record for record in records if record.get("struct") == "page")
    assert page["size"] == 4096
    (touched,) = page["members"]
    assert (touched["name"], touched["offset"], touched["samples"]) == ("touched", 4088, 4001)
    assert (touched["reads"], touched["writes"]) == (0, 4001)
    assert touched["functions"] == {"fill": 4001}


def test_perf_s_files_are_read(phases: Path, tmp_path: Path) -> None:
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    data = tmp_path / "perf.data"
    words = ["perf", "record", "-q", "-e", "cpu-clock:u", "--intr-regs=di,si", "-o", data, phases]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    run = types("-i", str(data), "--format", "csv")
    assert run.returncode == 0, run.stderr
    assert {line.split(",")[2] for line in run.stdout.splitlines() if line.startswith("box,")} == {
        "sum", "cells[]",
    }  # fmt: skip
    assert "instruction before" in run.stderr


def test_a_missing_decoder_is_said(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['iced_x86'] = None; "
        "from importlib import util; find = util.find_spec; "
        "util.find_spec = lambda name, *rest: None if name == 'iced_x86' else find(name, *rest); "
        "from purebpf.tools.types.__main__ import main; sys.exit(main(['0.1']))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert run.returncode == 1
    assert "pip install 'purebpf[types]'" in run.stderr


def test_another_run_answers_the_same_from_the_cache(
    phases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    recorded = tmp_path / "perf.data"
    record = [sys.executable, "-m", "purebpf", "record", "-F", "999", "-o", str(recorded), "--"]
    subprocess.run([*record, str(phases)], check=True, capture_output=True, cwd=ROOT, timeout=120)
    runs = [types("--format", "json", "-i", str(recorded)) for _ in range(2)]
    assert [run.returncode for run in runs] == [0, 0], runs
    assert runs[0].stdout == runs[1].stdout
    assert "box" in runs[0].stdout
    layouts = [types("--struct", "box", "-i", str(recorded)).stdout]
    kept = list((tmp_path / "cache" / "purebpf" / "types").iterdir())
    assert kept
    for file in kept:
        file.unlink()
    layouts.append(types("--struct", "box", "-i", str(recorded)).stdout)
    assert layouts[0] == layouts[1]
