"""Time off the CPU, in the formats that the other commands write too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.cli import saved
from purebpf.cli.destination import format_of
from tests.commands.conftest import ROOT, Workloads

pytestmark = pytest.mark.needs("bpf", "tracefs", "vmlinux_btf", "gcc")


def ran(command: str, *arguments: str) -> None:
    words = [sys.executable, "-m", f"purebpf.{command}", *arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["offcpu", "wall"])
def test_files_are_what_their_names_say(command: str, workloads: Workloads, tmp_path: Path) -> None:
    with workloads.running("split") as pid:
        for name in ("a.json.gz", "a.html", "a.pb.gz"):
            ran(command, "-p", str(pid), "-o", str(tmp_path / name), "0.5")
    assert saved.read(str(tmp_path / "a.json.gz")).unit == "ns"
    assert (tmp_path / "a.json.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "a.pb.gz").read_bytes()[:2] == b"\x1f\x8b"


@pytest.mark.parametrize(
    ("path", "name"), [(None, "text"), ("out", "text"), ("a.html", "html"), ("a.pb.gz", "pprof")]
)
def test_a_name_says_its_format(path: str | None, name: str) -> None:
    assert format_of(path) == name
