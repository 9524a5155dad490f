"""In a time namespace, the clocks of this process are not the kernel's (time_namespaces(7))."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")

PROGRAM = """
static volatile unsigned long sink;
__attribute__((noinline)) void innermost(void)
{
    for (unsigned long n = 0; n < 300000000UL; n++)
        sink += n;
}
int main(void)
{
    innermost();
    return sink == 0;
}
"""


def shifted(*arguments: str) -> str:
    """The output of purebpf where CLOCK_MONOTONIC is a day and four hours ahead."""
    unshare = shutil.which("unshare")
    assert unshare is not None
    done = subprocess.run(
        [
            *(unshare, "-Tf", "--monotonic", "100000", "--boottime", "100000"),
            *(sys.executable, "-m", "purebpf", *arguments),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    if "unshare: " in done.stderr:
        pytest.skip(f"no time namespaces: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_times_of_day_are_right() -> None:
    began = time.time()
    midnight = time.mktime((*time.localtime(began)[:3], 0, 0, 0, 0, 0, -1))
    listed = shifted("exec", "-T", "--", "true")
    times = re.findall(r"^(\d\d):(\d\d):(\d\d)\.", listed, re.MULTILINE)
    assert times, listed
    for hours, minutes, seconds in times:
        at = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
        assert (at - (began - midnight) + 2) % 86400 <= 600, "the offset is 27 hours and 47 minutes"


def test_a_process_that_has_ended_has_names(tmp_path: Path) -> None:
    source, program = tmp_path / "brief.c", tmp_path / "brief"
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", source, "-o", program], check=True)
    folded = shifted("profile", "-F", "499", "-f", "--", str(program))
    assert any("main;innermost" in line for line in folded.splitlines()), folded
    waits = shifted("offcpu", "-f", "--", "sleep", "0.3")
    assert any(line.startswith("sleep;") for line in waits.splitlines()), waits


def test_scripts_have_the_kernels_clocks() -> None:
    printed = 'printf("%s %d\\n", strftime("%s", nsecs), elapsed / 1000000000)'
    began = time.time()
    said = shifted("script", "-e", f"interval:ms:100 {{ {printed}; exit(); }}")
    ((at, elapsed_s),) = re.findall(r"^(\d+) (-?\d+)$", said, re.MULTILINE)
    assert began - 1 <= int(at) <= time.time()
    assert int(elapsed_s) <= time.time() - began


def test_shares_of_cpus_are_of_the_time_that_went_by() -> None:
    said = shifted("kwork", "top", "1")
    rows = re.findall(r"^ +\d+ +(\S+)% +(\S+)% +(\S+)% +(\S+)%$", said, re.MULTILINE)
    assert rows, said
    for row in rows:
        assert sum(map(float, row)) == pytest.approx(100, abs=1)
        assert float(row[1]) + float(row[2]) < 60, "the rest of the time is a day"
