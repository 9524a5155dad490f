"""Each command that measures works on the kernel that there is, or says what that kernel lacks."""

from __future__ import annotations

import sys

import pytest

from tests.support.environment import run
from tests.support.expected import GUESTS, kernel
from tests.support.nightly import by_day

pytestmark = [pytest.mark.needs("bpf"), pytest.mark.slow]

PROGRAM = """
import os, threading, time
text = bytearray(1 << 23)
for _ in range(7):
    os.getppid()
lock = threading.Lock()
lock.acquire()
thread = threading.Thread(target=lock.acquire)
thread.start()
time.sleep(0.2)
lock.release()
thread.join()
until = time.monotonic() + 1
while time.monotonic() < until:
    sum(range(1000))
"""
COMMAND = ("--", sys.executable, "-S", "-E", "-c", PROGRAM)
CASES: dict[str, tuple[tuple[str, ...], str]] = {
    "trace": (("trace", "-e", "getppid", *COMMAND), "getppid()"),
    "trace of a tracepoint": (
        ("trace", "-e", "sched:sched_switch", *COMMAND), "sched:sched_switch(prev_comm="
    ),
    "lock": (("lock", *COMMAND), "waits"),
    "lock of user space": (("lock", "--userspace", *COMMAND), "python lock"),
    "latency of a function": (("latency", "libc.so.6:getppid", *COMMAND), "getppid"),
    "latency of the kernel": (("latency", "vfs_read", *COMMAND), "vfs_read"),
    "latency of a pair": (
        ("latency", "-e", "syscalls:sys_enter_getppid,syscalls:sys_exit_getppid", *COMMAND),
        "getppid",
    ),
    "kwork": (("kwork", "1"), "softirq"),
    "kwork latency": (("kwork", "latency", "1"), "softirq"),
    "stat": (
        ("stat", "-e", "page-faults,context-switches,task-clock", *COMMAND), "page-faults"
    ),
    "summary": (("summary", *COMMAND), "getppid"),
    "top": (("top", "2", *COMMAND), "%"),
    "mem": (("mem", *COMMAND), ""),
}  # fmt: skip
DAY = CASES if kernel() in GUESTS else ("trace", "lock of user space", "latency of a pair")
"""On this kernel, each command has tests of its own."""


@pytest.mark.parametrize("case", by_day(CASES, DAY))
def test_a_command_works_or_says_what_is_missing(case: str) -> None:
    words, shown = CASES[case]
    result = run(*words)
    if result.returncode:
        said = result.stderr.strip()
        assert "Traceback" not in said
        assert len(said.splitlines()) <= 4, said
        assert any(word in said for word in ("Linux", "kernel", "support", "CONFIG_")), said
    else:
        assert shown.lower() in (result.stdout + result.stderr).lower()
