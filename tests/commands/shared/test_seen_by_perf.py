"""Events of tracepoints that purebpf follows stay visible to perf and others."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys

import pytest

from tests.commands.conftest import ROOT

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "tracefs"),
    pytest.mark.alone,  # programs of other tests may hide events
]

PUREBPF = (sys.executable, "-P", "-m", "purebpf")
CALLS = 1009
WORK = f"""
import os
for _ in range({CALLS}):
    os.getppid()
    os.close(os.open("/etc/hostname", os.O_RDONLY))
"""


@pytest.mark.parametrize(
    ("arguments", "event"),
    [
        (
            ("script", "-e", 'tracepoint:syscalls:sys_enter_getppid { print("seen") }'),
            "syscalls:sys_enter_getppid",
        ),
        (("open",), "syscalls:sys_enter_openat"),
    ],
    ids=["script", "open"],
)
def test_events_are_counted_while_a_program_follows_them(
    arguments: tuple[str, ...], event: str
) -> None:
    count = [*PUREBPF, "stat", "--format", "json", "-e", event]
    work = [sys.executable, "-c", WORK]
    follower = subprocess.Popen(
        [*PUREBPF, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
    )
    try:
        assert follower.stdout is not None
        while not select.select([follower.stdout], [], [], 0.2)[0]:
            subprocess.run(work, check=True)  # until it is attached and prints
        done = subprocess.run(
            [*count, "--", *work], capture_output=True, text=True, check=True, cwd=ROOT
        )
    finally:
        follower.send_signal(signal.SIGINT)
        follower.communicate(timeout=60)
    (row,) = json.loads(done.stdout)["counts"]
    assert row["value"] >= CALLS
