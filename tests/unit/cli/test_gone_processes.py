"""Of several processes some may have ended: they are skipped, counted and named."""

from __future__ import annotations

import os

import pytest

from purebpf.measure.targets import NoSuchTargetError, check_processes, without_gone
from purebpf.tools.offcpu.options import parse

GONE = 1 << 22
"""A number that the kernel gives nobody."""


def test_processes_that_have_ended_are_left_out_and_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options, _ = parse(["-p", f"{GONE},{os.getpid()}", "1"])
    assert options.pids == (os.getpid(),)
    assert f"skipped 1 of 2 processes, which have ended: {GONE}" in capsys.readouterr().err


def test_one_that_is_gone_is_still_an_error() -> None:
    for pids in ((GONE,), (GONE, GONE - 1)):
        assert without_gone(pids) == pids
        with pytest.raises(NoSuchTargetError, match="no process or thread"):
            check_processes(pids, thread_option="-t")


def test_one_may_end_between_the_command_line_and_the_run() -> None:
    check_processes((GONE, os.getpid()), thread_option="-t")
