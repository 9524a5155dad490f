"""Every command with fewer privileges than root has: it works, or one paragraph says what to do."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.support.environment import (
    BY_THEMSELVES,
    COMMANDS,
    OFFLINE,
    ROOT,
    installed,
    said,
)
from tests.support.host.privilege import PLAIN_TRACEPOINTS, least_user, run_as, worked

pytestmark = pytest.mark.needs("bpf", "perf_event", "setpriv", "mount_namespace")


LOSS_LINE = re.compile(r"^lost: ", re.MULTILINE)


def restrictions(*missing: str) -> str:
    """What the paragraph says of this host: the sysctls that matter, as they are."""
    said_of = {
        "kernel.perf_event_paranoid": "CAP_PERFMON" in missing,
        "kernel.unprivileged_bpf_disabled": True,
    }
    text = ""
    for name, matters in said_of.items():
        value = Path("/proc/sys", *name.split(".")).read_text().strip()
        if matters and not (name.endswith("disabled") and value == "0"):
            text += f"; {name} is {value}"
    return text


def paragraph(name: str, failed: str, missing: tuple[str, ...], capabilities: str) -> str:
    """The golden text: what failed, why on this host, and the one command that helps."""
    command = shlex.join([sys.executable, "-P", "-m", "purebpf", name, *COMMANDS[name]])
    why = f"this process lacks {' and '.join(missing)} (CapEff {capabilities})"
    advice = f"purebpf {name}: run it as root: sudo {command}"
    if name == "profile":
        advice += (
            ", or, for your own processes, without root: "
            "purebpf record --call-graph copy -p PID 5; purebpf report"
        )
    advice += f" -- {why}{restrictions(*missing)}"
    return re.escape(f"{advice} (") + rf"{failed} failed with EPERM\)"


def test_every_command_is_tried() -> None:
    assert installed() == COMMANDS.keys() | OFFLINE.keys() | BY_THEMSELVES.keys()
    assert all((ROOT / file).exists() for file in BY_THEMSELVES.values())


@pytest.mark.parametrize("name", OFFLINE)
def test_what_only_reads_files_needs_no_privilege(name: str) -> None:
    result = run_as(name, "ordinary")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_an_ordinary_user_sees_what_is_missing(name: str) -> None:
    result = run_as(name, "ordinary")
    # which call comes first depends on what the kernel lets anybody do
    expected = paragraph(
        name, r"(map|program) '.*bpf\(BPF_\w+\)", ("CAP_BPF", "CAP_PERFMON"), "0x0"
    )
    assert re.fullmatch(expected, said(result)), result.stderr
    assert (result.returncode, result.stdout) == (1, "")
    assert max(map(len, result.stderr.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_two_capabilities_are_enough(name: str) -> None:
    """A third one for plain tracepoints: only root may enter tracefs, which numbers them."""
    if name in PLAIN_TRACEPOINTS:
        assert "tracefs" in said(run_as(name, "bpf and perfmon"))
    assert worked(run_as(name, least_user(name)))


@pytest.mark.parametrize("name", COMMANDS)
def test_one_capability_is_not(name: str) -> None:
    result = run_as(name, "bpf only")
    expected = paragraph(
        name, r"program '\w+': bpf\(BPF_PROG_LOAD\)", ("CAP_PERFMON",), "0x8000000000"
    )
    assert re.fullmatch(expected, said(result)), result.stderr
    assert (result.returncode, result.stdout) == (1, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_root_without_the_right_to_raise_limits(name: str) -> None:
    """RLIMIT_MEMLOCK is 64 KiB and stays so, which matters before Linux 5.11 only."""
    result = run_as(name, "root without sys_resource")
    if result.returncode == 0:
        assert LOSS_LINE.search(result.stderr)
        return
    expected = (
        rf"purebpf {name}: .* failed with EPERM\. RLIMIT_MEMLOCK is 65536 bytes, which limits BPF "
        r"before Linux 5\.11\. raise it in the shell: ulimit -l unlimited"
    )
    assert re.fullmatch(expected, said(result)), result.stderr
    assert (result.returncode, result.stdout) == (1, "")
