"""Memory of a process that a test spoils, and what a result of purebpf must not have."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.environment import run

__all__ = ["EVIL", "Put", "check", "profiles_and_dump", "started", "writable"]

EVIL = b"\x1b[2J\n;evil! <b>\0"
"""16 bytes with controls and markup."""
LONGEST_S = 90
"""A profile of a second and a dump, on a machine with much to do."""
Put = Callable[[int, int], None]
"""Writes a word to an address."""


@contextmanager
def writable(pid: int) -> Iterator[Put]:
    """Open the memory of a process, and write words to it."""
    with Path(f"/proc/{pid}/mem").open("r+b", buffering=0) as memory:

        def put(at: int, value: int) -> None:
            memory.seek(at)
            memory.write(value.to_bytes(8, "little"))

        yield put


def check(result: subprocess.CompletedProcess[str]) -> None:
    """Check a result that has no text of the program's as it is."""
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    assert "\x1b[2J" not in result.stdout
    assert "\n;evil" not in result.stdout


@contextmanager
def started(command: Sequence[str | Path], settled_s: float) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that prints a line, and kill it at the end; it has `settled_s` to go on."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(settled_s)
            yield process
        finally:
            process.kill()


def profiles_and_dump(pid: int) -> tuple[str, str]:
    """Profile a process in two forms, and dump it; return the texts of folded stacks and HTML."""
    texts = []
    began = time.monotonic()
    for form in ("folded", "html"):
        line = ("--format", form, "--lines", "-U", "-F", "199", "-p", str(pid))
        result = run("profile", *line, "1")
        check(result)
        texts.append(result.stdout)
    check(run("dump", str(pid)))
    assert time.monotonic() - began < LONGEST_S
    return texts[0], texts[1]
