"""Every command with standard streams that are closed, full, or not read."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environment import (
    COMMANDS,
    ROOT,
    complete,
    environment,
    every_command,
    installed,
)

pytestmark = [pytest.mark.needs("bpf", "perf_event"), pytest.mark.any_kernel]


LOSS_LINE = re.compile(r"^lost: ", re.MULTILINE)


def redirected(name: str, how: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command from a shell that redirects as `how` says."""
    line = [sys.executable, "-m", "purebpf", name, *complete(name, arguments or COMMANDS[name])]
    return subprocess.run(
        ["sh", "-c", f'"$@" {how}', "sh", *line],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment(),
        timeout=240,
    )


@every_command
def test_standard_output_is_closed(name: str) -> None:
    result = redirected(name, ">&-", "50")  # said before the 50 s
    assert result.stderr == f"purebpf {name}: output standard output: write(2) failed with EBADF\n"
    assert result.returncode == 1


@every_command
def test_standard_output_is_closed_and_not_needed(name: str, tmp_path: Path) -> None:
    result = redirected(name, ">&-", "-o", str(tmp_path / "out"), *COMMANDS[name])
    assert result.returncode == 0, result.stderr
    assert LOSS_LINE.search(result.stderr)
    assert (tmp_path / "out").stat().st_size


@every_command
def test_standard_output_is_full(name: str) -> None:
    result = redirected(name, ">/dev/full")
    assert result.stderr.endswith(
        f"purebpf {name}: output standard output: write(2) failed with ENOSPC\n"
    )
    assert result.returncode == 1
    assert "Traceback" not in result.stderr


@every_command
def test_the_result_is_a_full_device(name: str) -> None:
    result = redirected(name, "", "-o", "/dev/full", *COMMANDS[name])
    expected = f"purebpf {name}: output /dev/full: write(2) failed with ENOSPC\n"
    assert result.stderr.endswith(expected), result.stderr
    assert result.returncode == 1


@pytest.mark.parametrize("how", ["2>&-", "2>/dev/full", "2>&- <&-"])
@every_command
def test_standard_error_takes_nothing(name: str, how: str) -> None:
    result = redirected(name, how)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout


@every_command
def test_every_stream_is_closed(name: str, tmp_path: Path) -> None:
    result = redirected(name, "<&- >&- 2>&-", "-o", str(tmp_path / "out"), *COMMANDS[name])
    assert result.returncode == 0
    assert (tmp_path / "out").stat().st_size


@pytest.mark.parametrize("argument", ["--help", "--no-such-option"])
@every_command
def test_asking_for_help_into_the_void(name: str, argument: str) -> None:
    result = redirected(name, ">&- 2>&-", argument)
    assert result.returncode == (0 if argument == "--help" else 2)


ALL_COMMANDS = pytest.mark.parametrize("name", sorted(installed()))


@pytest.mark.parametrize("how", ["2>&-", "2>/dev/full"])
@ALL_COMMANDS
def test_a_wrong_option_is_reported_whatever_the_streams_are(name: str, how: str) -> None:
    result = redirected(name, how, "--no-such-option")
    assert (result.returncode, result.stdout) == (2, "")


@ALL_COMMANDS
def test_help_for_a_full_device(name: str) -> None:
    result = redirected(name, ">/dev/full", "--help")
    assert result.stderr.endswith(
        f"purebpf {name}: output standard output: write(2) failed with ENOSPC\n"
    )
    assert result.returncode == 1
