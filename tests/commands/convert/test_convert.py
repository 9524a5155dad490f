"""`purebpf convert`: files in, files out; and readers by others agree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from json import dumps
from pathlib import Path

import pytest

from purebpf.cli import places
from purebpf.results.formats import answer, folded, json, perf_data, text
from purebpf.results.shape import table
from tests.commands.conftest import ROOT
from tests.support.builders import profiles
from tests.support.oracles import firefox_profiler
from tests.support.oracles.copied_stacks import build, perf_record


def convert(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "purebpf", "convert", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(line, shell=True, capture_output=True, text=True, check=False, cwd=ROOT)


pytestmark = pytest.mark.any_kernel


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """The example, saved."""
    path = tmp_path / "saved.json"
    path.write_text(json.document(profiles.example()))
    return str(path)


def test_standard_output_is_text(saved: str) -> None:
    result = convert(saved, "--format", "folded")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "".join(folded.lines(profiles.example()))


def test_saved_waits_are_told_as_offcpu_tells_them(tmp_path: Path) -> None:
    path = tmp_path / "waits.json"
    path.write_text(json.document(profiles.waiting()))
    result = convert(str(path))
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"waiting\n\n{''.join(places.pieces(profiles.waiting()))}"


def test_text_is_functions_and_the_heaviest_stacks(saved: str, tmp_path: Path) -> None:
    profile = profiles.example()
    cpus = answer.cpus_of_sample(profile)
    result = convert(saved)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{profile.title}\n\n{''.join(answer.pieces(profile, cpus=cpus))}"
    by_address = convert(saved, "--layout", "bcc")
    assert by_address.stdout == f"{profile.title}\n\n{''.join(text.blocks(profile))}"
    path = tmp_path / "out.folded"
    path_result = convert(saved, "-o", str(path))
    assert path_result.stderr == (
        f"wrote {path}, {path.stat().st_size} bytes\nlost in {saved}: 2 found no place. Raise it\n"
    )


DATA = perf_data.document(profiles.example())


@pytest.mark.parametrize("content", [json.document(profiles.example()).encode(), DATA])
@pytest.mark.parametrize("piped", [True, False])
def test_standard_input_is_read(content: bytes, piped: bool, tmp_path: Path) -> None:
    path = tmp_path / "saved"
    path.write_bytes(content)
    command = f"{sys.executable} -m purebpf convert - --format json"
    result = shell(f"cat {path} | {command}" if piped else f"{command} < {path}")
    assert result.returncode == 0, result.stderr
    assert json.parse(result.stdout).total == profiles.example().total


def test_a_closed_standard_input_is_reported() -> None:
    result = shell(f"{sys.executable} -m purebpf convert - <&-")
    assert result.returncode == 1
    assert "profile standard input: open(2) failed with EBADF" in " ".join(result.stderr.split())


def test_several_files_at_once(saved: str, tmp_path: Path) -> None:
    made = [str(tmp_path / name) for name in ("a.folded", "a.json.gz", "a.csv", "a.pb.gz")]
    result = convert(saved, *(word for path in made for word in ("-o", path)))
    assert result.returncode == 0, result.stderr
    assert Path(made[0]).read_text() == "".join(folded.lines(profiles.example()))
    again = convert(made[1], "--format", "json")
    assert again.stdout == Path(saved).read_text()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"words without number", b"PERFILE2", DATA[:-500], DATA[:300]]
)
def test_a_broken_profile_leaves_no_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken"
    path.write_bytes(content)
    result = convert(str(path), "-o", str(tmp_path / "out.csv"))
    assert result.returncode == 1
    assert " ".join(result.stderr.split()).startswith(f"purebpf convert: {path}: ")
    assert os.listdir(tmp_path) == ["broken"]


def test_a_full_disk_is_reported(saved: str) -> None:
    result = convert(saved, "--format", "pprof", "-o", "/dev/full")
    assert result.returncode == 1
    assert "write(2) failed with ENOSPC" in " ".join(result.stderr.split())


@pytest.mark.needs("go")
def test_pprof_counts_the_same(saved: str, tmp_path: Path) -> None:
    path = str(tmp_path / "a.pb.gz")
    assert convert(saved, "-o", path).returncode == 0
    options = ["-top", "-sample_index=samples", "-nodecount=1000", "-nodefraction=0"]
    command = ["go", "tool", "pprof", *options, path]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"Total samples = {profiles.example().total} " in told
    line = re.compile(r"^\s*(\d+)\s+\S+%\s+\S+%\s+(\d+)\s+\S+%\s+(.*)$", re.MULTILINE)
    found = {name: (int(own), int(total)) for own, total, name in line.findall(told)}
    # pprof has no line for a stack without frames, but counts it
    assert found == {each.function.name: each[1:] for each in table.lines(profiles.example())}


def test_what_speedscope_reads_is_read_again(saved: str, tmp_path: Path) -> None:
    path = str(tmp_path / "a.speedscope.json")
    assert convert(saved, "-o", path).returncode == 0
    again = convert(path, "--format", "folded")
    assert again.returncode == 0, again.stderr
    assert sorted(again.stdout.splitlines()) == sorted(
        "".join(folded.lines(profiles.example())).splitlines()
    )


@pytest.mark.needs("go")
def test_the_value_of_a_pprof_file_is_the_one_that_pprof_shows(saved: str, tmp_path: Path) -> None:
    path = str(tmp_path / "a.pprof")
    assert convert(saved, "-o", path).returncode == 0
    again = json.parse(convert(path, "--format", "json").stdout)
    assert again.unit == "ns"
    assert again.total == profiles.example().total * (10**9 // 99)
    command = ["go", "tool", "pprof", "-top", path]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"Total samples = {again.total / 1e6:.2f}ms" in told


@pytest.mark.needs("perf_event", "gcc", "perf")
def test_the_text_of_perf_script_is_read(tmp_path: Path) -> None:
    data = tmp_path / "perf.data"
    program = build(tmp_path, "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
    perf_record(data, "-g", "-F", "999", program, "0.3")
    script = f"perf script -i {data} 2> {tmp_path}/problems | {sys.executable} -m purebpf convert -"
    by_script = shell(f"{script} --format folded")
    assert by_script.returncode == 0, by_script.stderr
    by_report = convert(str(data), "--format", "folded")
    totals = [
        sum(int(line.rpartition(" ")[2]) for line in each.stdout.splitlines())
        for each in (by_script, by_report)
    ]
    assert totals[0] == totals[1] > 50
    path = ";main;level1;level2;leaf "  # by frame pointers, the caller of a leaf is missing
    user_only = [
        max(int(line.rpartition(" ")[2]) for line in each.stdout.splitlines() if path in line)
        for each in (by_script, by_report)
    ]
    assert user_only[0] == user_only[1] > 40


def test_samples_of_other_events_are_named(tmp_path: Path) -> None:
    text = tmp_path / "script.txt"
    text.write_text(
        "a 1 [000] 1.0: 1 cycles: \n\t7f00 f+0x1 (/bin/a)\n\n"
        "a 1 [000] 2.0: 1 faults: \n\t7f00 g+0x1 (/bin/a)\n\n"
    )
    result = convert(str(text), "--format", "folded")
    assert result.stdout == "a;f 1\n"
    assert "script.txt, not shown: faults: 1 sample\n" in result.stderr
    result = shell(f"{sys.executable} -m purebpf diff {text} {text}")
    assert result.stderr.count("not shown: faults: 1 sample\n") == 2


@pytest.mark.needs("profiler-cli")
def test_firefox_profiler_counts_the_same(saved: str, tmp_path: Path) -> None:
    path = str(tmp_path / "a.firefox.json")
    assert convert(saved, "-o", path).returncode == 0
    with firefox_profiler.opened(path, tmp_path) as viewer:
        threads = viewer.threads()
        total, found = viewer.samples()
    assert [(each["name"], each["pid"]) for each in threads] == [
        *(("app", "185"), ("tool", "7"), ("tool", "8"), ("kworker/0:1", "9")),
    ]
    assert total == 80
    assert found["work"] == (40, 70)
    assert found["help"] == (10, 40)
    assert found["vfs_read"] == (30, 30)


def test_samples_that_a_reader_left_out_are_said(tmp_path: Path) -> None:
    part = {"type": "sampled", "name": "p", "startValue": 0, "endValue": 1, "samples": [[0]]}
    parts = [{**part, "unit": "seconds", "weights": [1]}, {**part, "unit": "bytes", "weights": [2]}]
    tree = {"shared": {"frames": [{"name": "a"}]}, "profiles": parts}
    tree["$schema"] = "https://www.speedscope.app/file-format-schema.json"
    source = tmp_path / "two.speedscope.json"
    source.write_text(dumps(tree))
    result = convert(str(source), "-o", str(tmp_path / "out.folded"))
    assert "two.speedscope.json: 1 profile of the file was left out" in result.stderr
    result = shell(f"{sys.executable} -m purebpf diff {source} {source}")
    assert result.stderr.count("1 profile of the file was left out") == 2
