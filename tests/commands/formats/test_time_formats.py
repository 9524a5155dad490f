"""Time off the CPU, in the formats that the other commands write too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.observe.saved import profile_loader
from tests.commands.conftest import ROOT, Workloads

pytestmark = [pytest.mark.needs("bpf", "tracefs", "vmlinux_btf", "gcc"), pytest.mark.any_kernel]


def ran(command: str, *arguments: str) -> None:
    words = [sys.executable, "-m", "purebpf", command, *arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["offcpu", "wall"])
def test_files_are_what_their_names_say(command: str, workloads: Workloads, tmp_path: Path) -> None:
    with workloads.running("wait", "three") as pid:
        names = ("a.json.gz", "a.html", "a.pb.gz", "a.folded")
        to = [word for name in names for word in ("-o", str(tmp_path / name))]
        ran(command, "-p", str(pid), *to, "0.5")
    assert profile_loader.read(str(tmp_path / "a.json.gz")).unit == "ns"
    assert (tmp_path / "a.json.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "a.pb.gz").read_bytes()[:2] == b"\x1f\x8b"
    total_us = profile_loader.read(str(tmp_path / "a.json.gz")).total // 1000
    folded = profile_loader.read(str(tmp_path / "a.folded"))
    assert total_us - len(folded.rows()) <= folded.total <= total_us


def test_what_is_converted_is_what_was_written(workloads: Workloads, tmp_path: Path) -> None:
    with workloads.running("wait", "three") as pid:
        names = ("a.json", "a.folded", "a.txt")
        to = [word for name in names for word in ("-o", str(tmp_path / name))]
        ran("offcpu", "-p", str(pid), "--thresh", "0", *to, "0.5")
    ran(
        "convert",
        str(tmp_path / "a.json"),
        *(f"-o{tmp_path / name}" for name in ("b.folded", "b.txt")),
    )
    assert (tmp_path / "b.folded").read_text() == (tmp_path / "a.folded").read_text()
    first, converted = ((tmp_path / name).read_text().split("\n") for name in ("a.txt", "b.txt"))
    assert converted[:2] == first[:2]
