"""scripts/soak_stacks.py leaves nothing behind when it is ended."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import until

pytestmark = [pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "x86_64")]

_SCRIPT = Path(__file__).parents[4] / "scripts" / "soak_stacks.py"


def _children(pid: int) -> set[int]:
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        if int(text.rpartition(")")[2].split()[1]) == pid:
            found.add(int(path.parent.name))
    return found


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


@pytest.mark.needs("gcc")
def test_programs_end_with_the_soak_that_is_terminated() -> None:
    with subprocess.Popen(
        [sys.executable, str(_SCRIPT), "equality"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as soak:
        try:
            assert until(
                lambda: any(_comm(pid).startswith("soak_stack") for pid in _children(soak.pid))
            )
            assert until(lambda: len(_children(soak.pid)) > 3)
            children = _children(soak.pid)
            soak.send_signal(signal.SIGTERM)
            assert soak.wait(30) == 128 + signal.SIGTERM
            assert not [pid for pid in children if _comm(pid)]
        finally:
            soak.kill()
