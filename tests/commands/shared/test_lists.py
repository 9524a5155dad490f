"""Each name that `--list` prints is one that the command takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from purebpf.abi import syscalls
from purebpf.loader.perf.event_parser import choose_event
from purebpf.tools.latency.functions import Wanted, find_functions
from purebpf.tools.trace.selection import select

MACHINE = syscalls.machine("x86_64")
CALLS = {name for abi in MACHINE.abis for name in syscalls.table(abi).values()}


def listed(command: str, pattern: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-m", "purebpf", command, "-l", pattern],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [line.split()[0] for line in ran.stdout.splitlines()]


@pytest.mark.needs("perf_event")
@pytest.mark.parametrize("command", ["stat", "record"])
def test_events_can_be_chosen(command: str) -> None:
    events = listed(command, "*faults*")
    assert "page-faults" in events
    assert all(choose_event(event).event.name == event for event in events)


@pytest.mark.needs("x86_64")
def test_calls_can_be_traced() -> None:
    assert set(listed("trace", "%net")) == select(["%net"], CALLS)


def test_functions_of_a_file_can_be_timed() -> None:
    names = listed("latency", "libc.so.6:mkdt*")
    assert names == ["libc.so.6:mkdtemp"]
    (function,) = find_functions(names, Wanted(returns=False))
    assert function.name == "mkdtemp"
