"""What mypy --strict says about a user's program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def mypy(folder: Path, *files: Path) -> str:
    """Its output for `files`, which may import each other from `folder`, and purebpf."""
    (folder / "mypy.ini").write_text(
        "[mypy]\nstrict = True\n[mypy-numpy.*]\nfollow_imports = skip\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", *map(str, files)]
    environment = {"PATH": "/usr/bin:/bin", "MYPYPATH": f"{ROOT}:{folder}"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=environment
    )
    return done.stdout
