"""Commands that write table after table end when the reader has gone, quietly."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.support.environment import ROOT, environment

pytestmark = [pytest.mark.needs("bpf", "perf_event"), pytest.mark.any_kernel]

STREAMS = {
    "summary": ("-i", "0.2"),
    "top": ("-i", "0.2"),
    "runqlat": ("0.2",),
    "cpudist": ("0.2",),
    "sampleip": ("-F", "99"),
    "exec": (),
    "open": (),
    "tcp": (),
    "io": ("--slower", "0"),
}
PATIENCE_S = 60


@pytest.mark.parametrize("name", STREAMS)
def test_the_run_ends_with_its_reader(name: str) -> None:
    line = [sys.executable, "-m", "purebpf", name, *STREAMS[name]]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        line, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        try:
            _, errors = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            pytest.fail("still measuring")
    assert process.returncode == 0, errors
    assert "Broken" not in errors
    assert "Traceback" not in errors


def test_a_command_that_says_nothing_ends_too() -> None:
    """No sample is in this range, so that nothing is written that could fail."""
    line = [sys.executable, "-m", "purebpf", "sampleip", "-F", "99", "--range", "0x1000-0x1001"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        line, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, env=environment()
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        began = time.monotonic()
        process.communicate(timeout=PATIENCE_S)
    assert time.monotonic() - began < PATIENCE_S
    assert process.returncode == 0
