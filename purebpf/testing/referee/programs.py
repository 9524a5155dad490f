"""The programs of the referee, which know where they spend their time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from purebpf.testing.referee.scores import Truth
from purebpf.tuples import NamedTuple

__all__ = ["Program", "build", "read_truth", "run_alone"]

_SOURCES = Path(__file__).parent / "sources"
_COMPILERS = {".c": "gcc", ".cpp": "g++"}
_ROUNDS = {"callers": 640, "deep": 80, "objects": 520, "threads": 90}
"""Rounds for about a tenth of a second of CPU time on a machine of 2025."""


class Program(NamedTuple):
    """A program that is ready to run; `python` if it is one for CPython.

    `variant` says how it was compiled, or which CPython runs it; "" as Debian 12 does.
    """

    name: str
    command: tuple[str, ...]
    python: bool
    variant: str = ""

    @property
    def title(self) -> str:
        """Its name with the variant: `callers-fp`."""
        return f"{self.name}-{self.variant}" if self.variant else self.name

    def line(self, truth: Path, tenths: int) -> tuple[str, ...]:
        """Return the command that works for about `tenths` tenths of a second and writes a file."""
        return (*self.command, str(truth), str(_ROUNDS[self.name] * tenths))


def build(folder: Path, pythons: Sequence[str] = (sys.executable,)) -> Iterator[Program]:
    """Compile the programs with -O2: as Debian 12 does, and with frame pointers as Fedora does.

    The program in Python is there for each of `pythons`. A program whose compiler is not installed
    is named on standard error and left out.
    """
    sources = sorted(_SOURCES.glob("[!_]*.*"))
    for variant, pointers in (("", "-fomit-frame-pointer"), ("fp", "-fno-omit-frame-pointer")):
        for source in sources:
            compiler = _COMPILERS.get(source.suffix)
            if compiler is None:
                continue
            if not shutil.which(compiler):
                sys.stderr.write(f"{source.stem}: left out, {compiler} is not installed\n")
                continue
            target = folder / f"{source.stem}{variant and '-'}{variant}"
            subprocess.run([compiler, "-O2", "-g", pointers, "-o", target, source], check=True)
            yield Program(source.stem, (str(target),), False, variant)
    for source in sources:
        if source.suffix == ".py":
            target = folder / source.name  # an interpreter may be in a root of its own
            target.write_bytes(source.read_bytes())
            for number, python in enumerate(pythons):
                variant = Path(python).name.removeprefix("python") if number else ""
                yield Program(source.stem, (python, str(target)), True, variant)


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
