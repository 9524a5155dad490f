"""The commands that a summary points to show what it could only count."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.environment import run

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")
OPENS = "while True: open('/etc/hostname').close()"
CONNECTS = """
import socket, sys
while True:
    with socket.socket() as one:
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", int(sys.argv[1])))
"""


@contextmanager
def looping(code: str, *arguments: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", code, *arguments]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def follow(pid: int, shown: str, *options: str) -> str:
    """Run the command that the summary of a process recommends; its output.

    The summary itself begins with `shown`.
    """
    summary = run("summary", *options, "-p", str(pid), "1")
    assert shown in summary.stdout.partition("Summary of events")[0]
    told = summary.stderr
    (command,) = re.findall(r"purebpf ((?:open|tcp) --summary -p \d+)", " ".join(told.split()))
    return run(*command.split(), "1").stdout


def test_opens_lead_to_the_file() -> None:
    with looping(OPENS) as pid:
        assert "/etc/hostname" in follow(pid, "opens: /etc/hostname 100 %")


def test_refused_connections_lead_to_the_port() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else gets it
        port = closed.getsockname()[1]
        with looping(CONNECTS, str(port)) as pid:
            text = follow(pid, f"connects that fail: 127.0.0.1:{port} (ECONNREFUSED) 100 %", "-x")
    assert f":{port}" in text
    assert "ECONNREFUSED" in text or "refused" in text
