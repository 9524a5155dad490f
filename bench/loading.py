"""Loading objects, against libbpf: the first of a process, a second, and the same ones again.

    python bench/loading.py [--rounds 3] [--folder DIRECTORY]

The objects are those of that directory, else of Debian's libbpf-tools, or without that package of
tests/data and of purebpf. One process for each side and object measures its first load, then
another object's, and, with everything cached, later loads of the first; sides take turns. libbpf
runs through ctypes in a Python process of its own, timed around its calls alone. CPU seconds, the
kernel's share included. What either side refuses is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path

import results
from results import Figure

ROOT = Path(__file__).parents[1]
_LATER = 3
_PICKS: tuple[Callable[[list[float]], float], ...] = (
    itemgetter(0),
    itemgetter(1),
    lambda run: min(run[2:]),
)
"""The first load, that of another object, and the fastest of later ones."""

OURS = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import purebpf
purebpf.load, purebpf.read_object
taken = []
for path in [*sys.argv[1:3], *[sys.argv[1]] * %d]:
    start = time.process_time()
    with purebpf.load(path):
        taken.append(time.process_time() - start)
print(json.dumps(taken))
"""
THEIRS = """
import json, pathlib, sys, time
from tests.support.oracles import libbpf
libbpf._library()
taken = []
for path in [*sys.argv[1:3], *[sys.argv[1]] * %d]:
    start = time.process_time()
    with libbpf.loaded(pathlib.Path(path)):
        taken.append(time.process_time() - start)
print(json.dumps(taken))
"""


def objects(folder: Path | None) -> dict[str, bytes]:
    """The objects by name."""
    if folder:
        return {path.stem: path.read_bytes() for path in sorted(folder.iterdir())}
    from tests.support.oracles import libbpf_tools

    folders = ROOT / "tests/data", ROOT / "purebpf/objects"
    return dict(libbpf_tools.objects()) or {
        path.name.removesuffix(".bpf.o"): path.read_bytes()
        for folder in folders
        for path in sorted(folder.glob("*.bpf.o"))
        if not path.name.startswith(("elf_bad", "core_"))
    }


def times(script: str, path: str, other: str) -> list[float] | None:
    """CPU seconds of the first load, of `other` and of later loads; None when one is refused."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", script % _LATER, path, other],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def loadable(paths: list[str]) -> list[str]:
    """Those that both sides load."""
    return [path for path in paths if times(OURS, path, path) and times(THEIRS, path, path)]


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """The medians over all objects."""
    sys.path.insert(0, str(ROOT))
    rows: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, image in objects(options.folder).items():
            paths.append(f"{folder}/{name.replace('-', '_')}.bpf.o")
            Path(paths[-1]).write_bytes(image)
        paths = loadable(paths)
        for path, other in zip(paths, [*paths[1:], paths[0]], strict=True):
            runs = [
                (times(OURS, path, other), times(THEIRS, path, other))
                for _ in range(options.rounds)
            ]
            sides = [[run for run in side if run] for side in zip(*runs, strict=True)]
            row = rows[Path(path).name.removesuffix(".bpf.o")] = [
                statistics.median(pick(run) for run in side) for side in sides for pick in _PICKS
            ]
            print(f"{Path(path).name:30} {' '.join(f'{seconds * 1000:8.2f}' for seconds in row)}")
    ours, ours_second, later, theirs, theirs_second, theirs_later = (
        statistics.median(column) * 1000 for column in zip(*rows.values(), strict=True)
    )
    what = f"median of {len(rows)} objects"
    yield Figure(f"first load in a process, {what}", ours, "ms", "libbpf", theirs)
    yield Figure(f"a second object, {what}", ours_second, "ms", "libbpf", theirs_second)
    yield Figure(f"the same object again, {what}", later, "ms", "libbpf", theirs_later, 4)


if __name__ == "__main__":
    parser = results.parser(__doc__, rounds=3)
    parser.add_argument("--folder", type=Path, metavar="DIRECTORY")
    sys.exit(results.run(measure, parser.parse_args()))
