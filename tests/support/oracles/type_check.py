"""What mypy --strict and pyright say about a user's program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


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


def pyright(folder: Path, *files: Path) -> set[tuple[Path, int]]:
    """The file and line of each of its errors in `files`, which may import each other."""
    options = {"extraPaths": [str(ROOT), str(folder)], "typeCheckingMode": "standard"}
    (folder / "pyrightconfig.json").write_text(json.dumps(options))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(
        [*command, *map(str, files)], capture_output=True, text=True, check=False, cwd=folder
    )
    return {
        (Path(said["file"]), said["range"]["start"]["line"] + 1)
        for said in json.loads(done.stdout)["generalDiagnostics"]
        if said["severity"] == "error"
    }
