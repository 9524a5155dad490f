"""Programs that a command executes, with an allocator that nobody looked for at the start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc", "x86_64")
SOURCE = """
#include <stdlib.h>
static void *volatile kept;
__attribute__((noinline)) void keep(void) { for (int i = 0; i < 137; i++) kept = malloc(1000); }
int main(void) { keep(); return 0; }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("late")
    source, target = folder / "program.c", folder / "program"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-O1", "-static", "-o", target, source], check=True)
    return target


def measure(*words: str) -> tuple[str, int]:
    """What is printed, and the bytes that `keep` allocated."""
    command = [sys.executable, "-P", "-m", "purebpf", "mem", "--show", "allocated", "-f", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    size = sum(int(line.split()[-1]) for line in lines if ";keep " in line)
    return " ".join((done.stdout + done.stderr).split()), size


def test_a_program_that_a_shell_executes_is_told(program: Path) -> None:
    said, size = measure("--", "sh", "-c", f"exec {program}")
    assert size == 0
    assert f"Allocations of {program} are not traced" in said
    assert f"--library {program}" in said
    assert "lost: 1 allocator was not traced" in said


def test_it_is_traced_if_it_is_named(program: Path) -> None:
    said, size = measure("--library", str(program), "--", "sh", "-c", f"exec {program}")
    assert size == 137_000
    assert "not traced" not in said


@pytest.mark.parametrize("words", [(), ("sh", "-c")])
def test_nothing_is_told_of_allocators_that_are_traced(
    program: Path, words: tuple[str, ...]
) -> None:
    said, _ = measure("--", *(words or (str(program),)), *(["true"] if words else []))
    assert "not traced" not in said
