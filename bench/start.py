"""What `purebpf profile` takes until it is attached, by default and by frame pointers.

    python bench/start.py [--rounds 20] [--against CHECKOUT]

A process for each run, the ways in turn: its CPU time (the kernel's share, the interpreter and its
imports included), and the time since it began. Minima, as whatever else a machine does only adds.
With another checkout, the same there, by frame pointers if it has the option.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import results
from results import Figure

ROOT = Path(__file__).parents[1]
_LATER_MS = 10
"""True stacks may take so much more than those by frame pointers."""

ATTACHED = """
import importlib.util, os, runpy, sys, time

def attached(*_):
    cpu_ms = time.process_time() * 1000
    since_ms = (time.monotonic_ns() - int(os.environ["STARTED_NS"])) / 1e6
    print(cpu_ms, since_ms, len(sys.modules), flush=True)
    os._exit(0)

class Patch:
    def find_spec(self, name, path=None, target=None):
        if name not in ("purebpf.observe.processes.process_tracker", "purebpf.loader.followed"):
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        def exec_module(module):
            run(module)
            module.Followed.snapshot = attached
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Patch())
sys.path.insert(0, sys.argv[1])
sys.argv = ["purebpf profile", *sys.argv[2:]]
runpy.run_module("purebpf profile", run_name="__main__", alter_sys=True)
"""


class Start(NamedTuple):
    """One run: milliseconds of CPU, milliseconds since it began, modules imported."""

    cpu_ms: float
    since_ms: float
    modules: float


def start(checkout: Path, *options: str) -> Start:
    """Run the profiler until it is attached."""
    environment = {**os.environ, "STARTED_NS": str(time.monotonic_ns())}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-P", "-c", ATTACHED, str(checkout), *options, "-F", "99", "1"],
        capture_output=True,
        text=True,
        env=environment,
        cwd="/",
        check=False,
    )
    if done.returncode or not done.stdout:
        raise SystemExit(
            f"purebpf.tools.profile {' '.join(options)} did not attach:\n{done.stderr}"
        )
    return Start(*map(float, done.stdout.split()))


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """The minima."""
    ways: dict[str, tuple[Path, tuple[str, ...]]] = {
        "by frame pointers": (ROOT, ("--call-graph", "fp")),
        "by default": (ROOT, ()),
    }
    if options.against is not None:
        ways["there"] = (options.against, ())
    for way in ways.values():
        start(way[0], *way[1])  # writes the bytecode
    runs: dict[str, list[Start]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, (checkout, arguments) in ways.items():
            runs[name].append(start(checkout, *arguments))
    least = {name: Start(*map(min, zip(*taken, strict=True))) for name, taken in runs.items()}
    peer, theirs = ("", None) if "there" not in least else ("there", least["there"].cpu_ms)
    for name in ("by frame pointers", "by default"):
        yield Figure(f"CPU to attached, {name}", least[name].cpu_ms, "ms", peer, theirs)
        yield Figure(f"modules imported, {name}", least[name].modules, "modules")
    more = least["by default"].cpu_ms - least["by frame pointers"].cpu_ms
    yield Figure("more CPU by default than by frame pointers", more, "ms", limit=_LATER_MS)
    later = least["by default"].since_ms - least["by frame pointers"].since_ms
    yield Figure("attached later, waits for a CPU included", later, "ms")


if __name__ == "__main__":
    command_line = results.parser(__doc__, rounds=20)
    command_line.add_argument("--against", type=Path, metavar="CHECKOUT")
    sys.exit(results.run(measure, command_line.parse_args()))
