"""Loading the objects of Debian's libbpf-tools, against libbpf: the first time, and later ones.

    python bench/loading.py [--rounds 3]

One process for each side and object measures its first load and, with everything cached, later
ones; sides take turns. libbpf runs through ctypes in a Python process of its own, timed around its
calls alone. CPU seconds, the kernel's share included. What either side refuses is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import results
from results import Figure

ROOT = Path(__file__).parents[1]
_LATER = 3

OURS = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import purebpf
purebpf.load, purebpf.read_object
taken = []
for _ in range(1 + %d):
    start = time.process_time()
    with purebpf.load(sys.argv[1]):
        taken.append(time.process_time() - start)
print(json.dumps(taken))
"""
THEIRS = """
import json, pathlib, sys, time
from tests.support import libbpf
libbpf._library()
taken = []
for _ in range(1 + %d):
    start = time.process_time()
    with libbpf.loaded(pathlib.Path(sys.argv[1])):
        taken.append(time.process_time() - start)
print(json.dumps(taken))
"""


def times(script: str, path: str) -> list[float] | None:
    """CPU seconds of the first load and of later ones; None when it is refused."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", script % _LATER, path],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """The means over all objects."""
    sys.path.insert(0, str(ROOT))
    from tests.support.libbpf_tools import objects

    rows: dict[str, tuple[float, float, float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, image in objects().items():
            path = f"{folder}/{name.replace('-', '_')}.bpf.o"
            Path(path).write_bytes(image)
            rounds = [(times(OURS, path), times(THEIRS, path)) for _ in range(options.rounds)]
            if any(ours is None or theirs is None for ours, theirs in rounds):
                continue
            middle = [
                statistics.median(each)
                for side in zip(*rounds, strict=True)
                for each in ([run[0] for run in side], [min(run[1:]) for run in side])
            ]
            rows[name] = (middle[0], middle[1], middle[2], middle[3])
            print(f"{name:20} {' '.join(f'{each * 1000:8.2f}' for each in middle)}", flush=True)
    ours, later, theirs, theirs_later = (
        statistics.mean(column) * 1000 for column in zip(*rows.values(), strict=True)
    )
    what = f"mean of {len(rows)} objects"
    yield Figure(f"first load in a process, {what}", ours, "ms", "libbpf", theirs, 10)
    yield Figure(f"later loads, {what}", later, "ms", "libbpf", theirs_later, 4)


if __name__ == "__main__":
    sys.exit(results.run(measure, results.parser(__doc__, rounds=3).parse_args()))
