"""`report -i -` reads standard input: a file, and a pipe that cannot seek."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.results.formats import perf_data
from tests.commands.conftest import ROOT
from tests.support.builders import profiles

COMMAND = [sys.executable, "-m", "purebpf.report", "-i"]

pytestmark = pytest.mark.any_kernel


def folded(source: str, **stdin: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [*COMMAND, source, "--format", "folded"],
        capture_output=True, check=False, cwd=ROOT, timeout=60, **stdin,
    )  # fmt: skip


def test_a_pipe_and_a_file_are_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    data = perf_data.document(profiles.example())
    path.write_bytes(data)
    named = folded(str(path))
    assert named.returncode == 0, named.stderr
    assert b"kworker/0:1 2\n" in named.stdout
    assert folded("-", input=data).stdout == named.stdout
    with path.open("rb") as file:
        assert folded("-", stdin=file).stdout == named.stdout


def test_what_is_not_perf_data_is_named_standard_input() -> None:
    failed = folded("-", input=b"no perf.data")
    assert failed.returncode == 1
    assert failed.stderr.startswith(b"purebpf.report: standard input: ")
