"""What the benches compare with, and what both sides are made to work on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

__all__ = ["ATTACHED_S", "Watch", "attached", "compiled", "cpu_s", "here", "watching", "workload"]

ATTACHED_S = 2.0
"""Seconds after which a tool that does not say so is taken to have attached."""

Watch = Callable[[], AbstractContextManager[object]]
"""Starts a tool that watches the machine until the end of the block."""


def here(*programs: str) -> bool:
    """Whether all are installed; says so when not."""
    absent = [program for program in programs if not shutil.which(program)]
    if absent:
        print(f"left out, not installed: {', '.join(absent)}", file=sys.stderr)
    return not absent


def cpu_s(child: subprocess.Popen[bytes]) -> float:
    """Wait for a program: CPU seconds of it and of what it waited for, its start included."""
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{child.args!r}: exit status {child.returncode}")
    return used.ru_utime + used.ru_stime


def watching(*command: str) -> Watch:
    """A program that watches the machine until Ctrl-C."""

    @contextmanager
    def watch() -> Iterator[None]:
        nowhere = subprocess.DEVNULL
        with subprocess.Popen(command, stdout=nowhere, stderr=nowhere) as process:
            time.sleep(ATTACHED_S)
            try:
                yield
            finally:
                process.send_signal(signal.SIGINT)

    return watch


def workload(name: str, folder: str, *options: str) -> str:
    """The path of a compiled program of bench/workloads."""
    target = f"{folder}/{name}"
    source = Path(__file__).parent / "workloads" / f"{name}.c"
    subprocess.run(["gcc", *(options or ("-O2",)), "-o", target, str(source)], check=True)
    return target


def compiled(name: str, folder: str) -> str:
    """The path of an object that clang -O2 made of a BPF program of bench/workloads."""
    target = f"{folder}/{name}.bpf.o"
    source = Path(__file__).parent / "workloads" / f"{name}.bpf.c"
    flags = ["-g", "-O2", "-target", "bpf", "-mcpu=v3"]
    include = f"-I/usr/include/{os.uname().machine}-linux-gnu"
    command = ["clang-19", *flags, include, "-c", str(source), "-o", target]
    subprocess.run(command, check=True)
    return target


@contextmanager
def attached(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A tool that prints "Attached" when it is, until Ctrl-C; what it prints is thrown away."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, **streams) as process:  # type: ignore[call-overload]
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Attached"):
                break
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()
