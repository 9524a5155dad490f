"""What pages of the documentation show, run as a reader would."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def run_example(page: str) -> str:
    """Run the one Python example of a page, with warnings as errors; what it prints."""
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    return run_python(code)


def run_python(code: str) -> str:
    """Run a program, with warnings as errors; what it prints."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout
