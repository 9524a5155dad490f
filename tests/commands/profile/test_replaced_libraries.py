"""Code that comes to the addresses of code that is gone: each stack has its own names."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")

PROGRAM = r"""
#include <dlfcn.h>
static volatile unsigned long sink;
__attribute__((noinline)) void spin(void) { for (int i = 0; i < 200000; i++) sink += i; }
__attribute__((noinline)) void of_first(void) { spin(); sink++; }
__attribute__((noinline)) void of_second(void) { spin(); sink++; }
int main(void)
{
    for (int turn = 0;; turn++) {
        void *library = dlopen(turn & 1 ? "./second.so" : "./first.so", RTLD_NOW);
        void (*calls)(void (*)(void)) = dlsym(library, turn & 1 ? "second" : "first");
        for (int i = 0; i < 20; i++)
            calls(turn & 1 ? of_second : of_first);
        dlclose(library);
    }
}
"""
LIBRARY = r"""
volatile int sink;
#ifdef PADDED
__attribute__((used)) static int padding(int x) { return x * 3 + sink; }
#endif
void NAME(void (*calls)(void)) { calls(); sink++; }
"""
BUILD = ["gcc", "-O1", "-x", "c", "-"]


@pytest.fixture
def plugins(tmp_path: Path) -> Iterator[int]:
    for name, flags in (("first", []), ("second", ["-DPADDED"])):
        command = [*BUILD, *flags, f"-DNAME={name}", "-shared", "-fPIC", "-o", f"{name}.so"]
        subprocess.run(command, input=LIBRARY, text=True, check=True, cwd=tmp_path)
    command = [*BUILD, "-o", "plugins", "-ldl"]
    subprocess.run(command, input=PROGRAM, text=True, check=True, cwd=tmp_path)
    with subprocess.Popen(["./plugins"], cwd=tmp_path) as process:
        time.sleep(0.3)
        yield process.pid
        process.kill()


def run_tool(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "purebpf", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def _callers(folded: str) -> set[tuple[str, str]]:
    """The functions that called `of_first` and `of_second`."""
    found = set()
    for line in folded.splitlines():
        frames = line.rpartition(" ")[0].split(";")
        found |= {(a, b) for a, b in pairwise(frames) if b[:3] == "of_"}
    return found


def test_code_of_two_files_at_one_address_has_no_name(plugins: int) -> None:
    run = run_tool("profile", "-f", "-U", "-F", "499", "-p", str(plugins), "2")
    assert run.returncode == 0, run.stderr
    assert _callers(run.stdout) <= {
        (caller, of)
        for of in ("of_first", "of_second")
        for caller in ("[unknown]", "[no unwind info]", "[rule]")
    }
    assert "several files were loaded at this address" in " ".join(run.stderr.split())


def test_samples_of_a_recording_have_the_names_of_their_time(plugins: int, tmp_path: Path) -> None:
    data = str(tmp_path / "plugins.data")
    record = ("record", "--call-graph", "copy", "-F", "499", "-p", str(plugins), "-o", data, "2")
    assert run_tool(*record).returncode == 0
    run = run_tool("report", "-i", data, "--format", "folded")
    assert run.returncode == 0, run.stderr
    assert {pair for pair in _callers(run.stdout) if pair[0] != "[unknown]"} == {
        ("first", "of_first"),
        ("second", "of_second"),
    }


UPGRADED = r"""
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) void NAME(void) { for (int i = 0; i < 10000000; i++) sink += i; }
int main(void)
{
    for (int i = 0; i < 30; i++)
        NAME();
    if (NEXT[0])
        execl(NEXT, "service", (char *)0);
}
"""


@pytest.fixture
def service(tmp_path: Path) -> str:
    """A program that executes its next version, which has the same name and the same addresses."""
    following = ""
    for name in ("new_work", "old_work"):
        folder = tmp_path / name
        folder.mkdir()
        flags = ["-no-pie", "-static", f"-DNAME={name}", f'-DNEXT="{following}"']
        following = str(folder / "service")
        command = [*BUILD, *flags, "-o", following]
        subprocess.run(command, input=UPGRADED, text=True, check=True)
    return following


def test_two_programs_of_one_process_and_name_have_no_names(service: str) -> None:
    run = run_tool("profile", "-f", "-U", "-F", "199", "--", service)
    assert run.returncode == 0, run.stderr
    assert "service;" in run.stdout
    assert "_work" not in run.stdout, run.stdout
    assert "several files were loaded at this address" in " ".join(run.stderr.split())


def test_a_recording_names_both_programs(service: str, tmp_path: Path) -> None:
    data = str(tmp_path / "service.data")
    assert run_tool("record", "-g", "-F", "199", "-o", data, "--", service).returncode == 0
    run = run_tool("report", "-i", data, "--format", "folded")
    assert run.returncode == 0, run.stderr
    lines = [line.rpartition(" ") for line in run.stdout.splitlines()]
    old = sum(int(count) for stack, _, count in lines if "old_work" in stack)
    new = sum(int(count) for stack, _, count in lines if "new_work" in stack)
    assert 0.6 < old / new < 1.6, run.stdout
