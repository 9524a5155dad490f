"""Events of tracepoints that purebpf follows stay visible to perf and others."""

from __future__ import annotations

import json
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
TIMES = 9
WORK = f"""
import os, socket
server = socket.create_server(("127.0.0.1", 0))
for _ in range({CALLS}):
    os.getppid()
    os.close(os.open("/etc/hostname", os.O_RDONLY))
for _ in range({TIMES}):
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {{}}), 0)
    client = socket.create_connection(server.getsockname())
    server.accept()
"""
GETPPID, FORK = "syscalls:sys_enter_getppid", "sched:sched_process_fork"


@pytest.mark.parametrize(
    ("command", "event", "least"),
    [
        (("script", "-e", f"tracepoint:{GETPPID} {{ @ = count() }}"), GETPPID, CALLS),
        (("trace", "-e", FORK), FORK, TIMES),
        (("trace", "--call-graph", "auto", "-e", FORK), FORK, TIMES),
        (("latency", "-e", f"{GETPPID},syscalls:sys_exit_getppid"), GETPPID, CALLS),
        (("open",), "syscalls:sys_enter_openat", CALLS),
        (("exec", "-x"), "syscalls:sys_enter_execve", TIMES),
        (("tcp",), "syscalls:sys_exit_accept4", TIMES),
    ],
    ids=["script", "trace", "trace with stacks", "latency", "open", "exec", "tcp"],
)
def test_events_are_counted_while_a_program_follows_them(
    command: tuple[str, ...], event: str, least: int
) -> None:
    count = [*PUREBPF, "stat", "--format", "json", "-e", event, "--", sys.executable, "-c", WORK]
    follower = subprocess.Popen(
        [*PUREBPF, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT
    )
    try:
        assert follower.stderr is not None
        assert follower.stderr.readline()  # it is attached
        done = subprocess.run(count, capture_output=True, text=True, check=True, cwd=ROOT)
    finally:
        follower.send_signal(signal.SIGINT)
        follower.communicate(timeout=60)
    (row,) = json.loads(done.stdout)["counts"]
    assert row["value"] >= least
