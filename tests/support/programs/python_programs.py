"""Programs of any CPython, that run until a test has looked at them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["running"]


@contextmanager
def running(
    python: str, program: str, path: Path, *, is_json: bool = False
) -> Iterator[tuple[int, Any]]:
    """Its number, and the words of the line that it prints once it is ready, or its JSON."""
    file = path / "program.py"
    file.write_text(program)
    with subprocess.Popen([python, file], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            yield process.pid, json.loads(line) if is_json else line.split()
        finally:
            process.kill()
