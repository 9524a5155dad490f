"""Probes by a library's name and a process: in the file that this process has."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT
from tests.support.nightly import by_day
from tests.support.programs.own_files import LIBRARY, WAYS, running_with_own_library

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf", "gcc"),
    pytest.mark.any_kernel,  # guests before 5.12 lack atomic exchange
]

CALLS = 5
COMMAND = (sys.executable, "-P", "-m", "purebpf", "script")


@pytest.fixture(params=list(WAYS))
def process(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The PID of a process with its own library; the linker would take another one here."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "place"))
    with running_with_own_library(request.param, tmp_path) as (pid, _):
        yield str(pid)


def script(pid: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "-p", pid, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60
    )


@pytest.mark.parametrize(
    "point",
    by_day(
        [f"uprobe:{LIBRARY}:work", f"uretprobe:{LIBRARY}:work", f"usdt:{LIBRARY}:own:begin",
         f"uprobe:{LIBRARY}:wor*"],
        [f"usdt:{LIBRARY}:own:begin", f"uprobe:{LIBRARY}:wor*"],
    ),
)  # fmt: skip
def test_points_by_name(process: str, point: str) -> None:
    text = f"{point} {{ @++; if (@ == {CALLS}) {{ exit() }} }} interval:s:20 {{ exit() }}"
    done = script(process, "-q", "-e", text)
    count = re.search(r"^@: (\d+)$", done.stdout, re.MULTILINE)
    assert count, done.stdout + done.stderr
    assert int(count[1]) >= CALLS  # some more while it ends


def test_points_are_listed(process: str) -> None:
    listed = script(process, "-l", f"uprobe:{LIBRARY}:*").stdout
    assert f"uprobe:{LIBRARY}:work\n" in listed


def test_a_library_that_a_container_lacks_is_missing(tmp_path: Path) -> None:
    with running_with_own_library("root directory", tmp_path) as (pid, _):
        done = script(
            str(pid), "-e", "uprobe:libnss_dns.so.2:*dns* { @++ } interval:s:1 { exit() }"
        )
        assert done.returncode
        done = script(str(pid), "-e", "uprobe:libz.so.1:inflate { @++ } interval:s:1 { exit() }")
        assert done.returncode
        assert "which has not mapped it" in done.stderr
