"""The programs of the referee, which know where they spend their time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from purebpf.testing.referee.scores import Truth
from purebpf.tuples import NamedTuple

__all__ = ["Program", "build", "read_truth", "run_alone"]

_SOURCES = Path(__file__).parent / "sources"
_COMPILERS = {".c": "gcc", ".cpp": "g++"}
_ROUNDS = {"callers": 640, "deep": 80, "objects": 520, "threads": 90}
"""Rounds for about a tenth of a second of CPU time on a machine of 2025."""


class Program(NamedTuple):
    """A program that is ready to run; `python` if it is one for CPython."""

    name: str
    command: tuple[str, ...]
    python: bool

    def line(self, truth: Path, tenths: int) -> tuple[str, ...]:
        """Return the command that works for about `tenths` tenths of a second and writes a file."""
        return (*self.command, str(truth), str(_ROUNDS[self.name] * tenths))


def build(
    folder: Path, python: str = sys.executable, *, frame_pointers: bool = False
) -> Iterator[Program]:
    """Compile the programs with -O2: as Debian does, or with frame pointers as Fedora does.

    A program whose compiler is not installed is named on standard error and left out.
    """
    pointers = "-fno-omit-frame-pointer" if frame_pointers else "-fomit-frame-pointer"
    for source in sorted(_SOURCES.glob("[!_]*.*")):
        if source.suffix == ".py":
            target = folder / source.name  # the interpreter may be in a root of its own
            target.write_bytes(source.read_bytes())
            yield Program(source.stem, (python, str(target)), python=True)
        elif compiler := _COMPILERS.get(source.suffix):
            if not shutil.which(compiler):
                sys.stderr.write(f"{source.stem}: left out, {compiler} is not installed\n")
                continue
            target = folder / source.stem
            subprocess.run([compiler, "-O2", "-g", pointers, "-o", target, source], check=True)
            yield Program(source.stem, (str(target),), python=False)


def read_truth(file: Path) -> Truth:
    """Return the truth that a program wrote."""
    document = json.loads(file.read_bytes())
    return Truth(
        {tuple(path.split(";")): cpu_s for path, cpu_s in document["paths"].items()},
        document["cpu_s"],
    )


def run_alone(program: Program, truth: Path, tenths: int) -> float:
    """Run a program that nobody watches, and return its wall time in seconds."""
    start = time.monotonic()
    subprocess.run(program.line(truth, tenths), check=True, env=os.environ)
    return time.monotonic() - start
