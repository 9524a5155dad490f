"""The workload of workloads/syscalls.c, which begins on request and asleep before and after."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from purebpf.syscall import proc
from tests.commands.conftest import Workloads


class Waiting:
    """A workload that does its calls on request, and lives until it is left."""

    def __init__(self, command: list[str], calls: int) -> None:
        environment = os.environ | {"CALLS": str(calls)}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment)
        self.pid = self.process.pid
        self.expect(b"ready\n")

    def expect(self, line: bytes) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == line

    def begin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def act(self) -> None:
        self.begin()
        self.expect(b"done\n")
        self.falls_asleep()  # so that the write of this line has returned

    def falls_asleep(self) -> None:
        while (proc.status(self.pid) or {})["State"] != "S (sleeping)":
            os.sched_yield()

    def end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


@contextmanager
def waiting(workloads: Workloads, *arguments: object, calls: int = 1) -> Iterator[Waiting]:
    made = Waiting([workloads.path("syscalls"), "wait", *map(str, arguments)], calls)
    try:
        yield made
    finally:
        made.end()
