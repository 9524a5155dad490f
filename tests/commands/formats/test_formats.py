"""Formats as a user meets them: misspelt, too many of them, on a disk that is too small."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.formats import FORMATS
from purebpf.results import Labels, Profile
from purebpf.results.formats import json
from purebpf.symbols.frame import Address, FileOffset, Frame
from tests.commands.conftest import ROOT
from tests.support.environment import mounted

pytestmark = pytest.mark.any_kernel

STACK_COMMANDS = {
    "profile": ("1",),
    "offcpu": ("1",),
    "wall": ("1",),
    "report": ("-i", "no.data"),
    "convert": ("tests/data/stacks.folded",),
}

stack_commands = pytest.mark.parametrize("name", STACK_COMMANDS)


def run(
    name: str, *arguments: str, prefix: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    command = [*prefix, sys.executable, "-m", "purebpf", name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@stack_commands
def test_an_unknown_format_is_reported_with_the_known_ones(name: str, tmp_path: Path) -> None:
    where = ("--format", "svg", "-o", str(tmp_path / "out.svg"))
    done = run(name, *where, *STACK_COMMANDS[name])
    known = ", ".join(FORMATS)
    assert f"argument --format: unknown format 'svg'; known: {known}" in done.stderr
    assert (done.returncode, done.stdout, os.listdir(tmp_path)) == (2, "", [])


@stack_commands
def test_each_format_needs_a_file(name: str) -> None:
    done = run(name, "--format", "html", "--format", "pprof", *STACK_COMMANDS[name])
    assert "each of several formats needs its own -o" in done.stderr
    assert (done.returncode, done.stdout) == (2, "")


def incompressible(stacks: int = 3000) -> Profile:
    """A profile that takes more than 64 kB in every format, packed or not."""
    chance = random.Random(1)
    found = Profile("much")
    for number in range(stacks):
        offset = FileOffset(16 * number)
        name, module = f"{chance.getrandbits(256):x}", f"/srv/{chance.getrandbits(64):x}"
        frame = Frame(name, 0, module, Address(0x400000 + offset), "user", "ab", offset)
        found.add((frame,), (), 1 + number, Labels("app", 1 + number % 7))
    return found


@pytest.mark.needs("mount_namespace")
@pytest.mark.parametrize("name", FORMATS)
def test_a_full_disk_keeps_no_part_of_a_file(name: str, tmp_path: Path) -> None:
    saved, small = tmp_path / "saved.json", tmp_path / "small"
    saved.write_text(json.document(incompressible()))
    small.mkdir()
    disk = mounted(f"mount -t tmpfs -o size=64k tmpfs '{small}'")
    done = subprocess.run(
        [
            *(*disk, "sh", "-c", '"$@"; echo "status $?"; ls -A "$0"', str(small)),
            *(sys.executable, "-m", "purebpf", "convert", str(saved)),
            *("--format", name, "-o", str(small / "out")),
            *(["--all"] if name == "text" else []),  # else it is short
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    told = " ".join(done.stderr.split())
    assert told.endswith(f"purebpf convert: output {small}/out: write(2) failed with ENOSPC")
    assert "Traceback" not in told
    assert done.stdout == "status 1\n", "and nothing else is there"
