"""The memory that an ordinary user may lock is divided among the rings of a recording."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("perf_event")

_CAPABILITIES = "-all,+dac_read_search,+dac_override"
"""Only as much as reading this interpreter below a home directory of root takes."""


def test_copies_of_stacks_leave_room_for_what_processes_do(tmp_path: Path) -> None:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("no setpriv (util-linux)")
    tmp_path.chmod(0o777)
    output = tmp_path / "own.data"
    who = ("--reuid=61003", "--regid=61003", "--clear-groups")
    less = (f"--{name}={_CAPABILITIES}" for name in ("inh-caps", "ambient-caps", "bounding-set"))
    script = 'ulimit -l 64; sleep 30 & "$@" -p $! 0.3; status=$?; kill $!; exit $status'
    record = (sys.executable, "-m", "purebpf", "record", "--call-graph", "copy", "-o", str(output))
    done = subprocess.run(
        [setpriv, *who, *less, "sh", "-c", script, "sh", *record],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    assert output.stat().st_size
