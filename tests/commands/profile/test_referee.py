"""`profile` has no impossible stack of a program that measures itself, and its shares are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.testing.referee.profilers import PROFILERS, observe
from purebpf.testing.referee.programs import build, read_truth
from purebpf.testing.referee.scores import score, share_error
from tests.support.nightly import by_day

HERTZ = 199
SIGMAS = 4.0
"""Chance is an average: more than four times as much is no accident."""


@pytest.mark.parametrize(
    "name", by_day(["callers", "deep", "objects", "threads"], ["callers", "threads"])
)
def test_profile_agrees_with_the_program(name: str, tmp_path: Path) -> None:
    programs = {program.name: program for program in build(tmp_path)}
    if name not in programs:
        pytest.skip("its compiler is not installed")
    truth, work = tmp_path / "truth.json", tmp_path / "work"
    work.mkdir()
    command = programs[name].line(truth, 15)
    seen = observe(PROFILERS[0], command, HERTZ, work, lambda: read_truth(truth).cpu_s)
    result = score(read_truth(truth), seen, HERTZ)
    assert result.samples > 100
    assert result.impossible == 0
    shares = share_error([result])
    assert shares.error < SIGMAS * shares.chance
