"""Programs of any CPython, that run until a test has looked at them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["running"]


@contextmanager
def running(python: str, program: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Its number, and the words of the line that it prints once it is ready."""
    file = path / "program.py"
    file.write_text(program)
    with subprocess.Popen([python, file], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield process.pid, process.stdout.readline().split()
        finally:
            process.kill()
