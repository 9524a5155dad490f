"""With room for a few descriptors only, a command says so, wherever it notices."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.commands.conftest import ROOT
from tests.support.nightly import by_day

pytestmark = pytest.mark.needs("bpf", "perf_event")

ENOUGH = (32, 48, 64, 80, 96, 128, 160)
FEWEST, MOST = 4, 24
"""From what Python hardly starts with to what nearly is enough."""


def limited(limit: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with a limit."""
    command = ["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@contextlib.contextmanager
def busy_program() -> Iterator[None]:
    """Run a program that is always on a CPU: how it was walked is only said where it was seen."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as program:
        try:
            yield
        finally:
            program.kill()


def test_one_paragraph_at_every_limit() -> None:
    said = 0
    for limit in range(FEWEST, MOST + 1):
        if limited(limit, "-c", "import re").returncode:
            continue  # Python itself does not start
        done = limited(limit, "-m", "purebpf", "profile", "-F", "49", "0.1")
        assert "Traceback" not in done.stderr, f"{limit}: {done.stderr}"
        assert done.returncode in (0, 1)
        if done.returncode:
            assert done.stderr.startswith("purebpf profile: "), limit
            text = " ".join(done.stderr.split())
            assert f"this process has reached {limit} open files (RLIMIT_NOFILE" in text, text
            said += 1
    assert said > 10


@pytest.mark.parametrize("limit", by_day(ENOUGH, [32, 64, 160]))
def test_a_small_limit_costs_the_tables_and_not_the_profile(limit: int) -> None:
    """Whether there is enough is known before the run, not when a file is missing in the middle."""
    with busy_program():
        done = limited(limit, "-m", "purebpf", "profile", "-F", "49", "0.5")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stderr.split())
    assert "walked by frame pointers" in text
    assert f"this process may have {limit} in all (RLIMIT_NOFILE" in text
    assert "ulimit -n" in text
    assert "EMFILE" not in text


def test_tables_that_were_asked_for_say_which_limit_to_raise() -> None:
    done = limited(64, "-m", "purebpf", "profile", "--call-graph", "tables", "0.1")
    assert done.returncode == 1
    assert "Raise it: ulimit -n" in " ".join(done.stderr.split())
