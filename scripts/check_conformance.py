"""Compare a run of bpftrace's runtime tests with the list of tests that may fail.

    python scripts/check_conformance.py RESULTS.json [--names NAMES.txt]

RESULTS.json is a list of objects with "suite", "name" and "verdict". The list may only shrink: a
test that fails and is not in it is an error, and so is a test that passes and is in it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

__all__ = ["compare", "main", "read_names"]

LIST = Path(__file__).parents[1] / "tests/data/bpftrace_failing.txt"


def read_names(path: Path) -> list[str]:
    """Return the names of a file: one a line, `#` begins a comment."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def compare(verdicts: Mapping[str, str], allowed: Collection[str]) -> list[str]:
    """Return a line for each test whose verdict the list does not expect."""
    lines = []
    for name, verdict in sorted(verdicts.items()):
        if verdict == "pass" and name in allowed:
            lines.append(f"passes, take it off the list: {name}")
        elif verdict != "pass" and name not in allowed:
            lines.append(f"{verdict}: {name}")
    return lines


def _join_variants(rows: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return a verdict for each name: tests of other machines have the names of ours."""
    verdicts: dict[str, str] = {}
    for row in rows:
        name = f"{row['suite']}.{row['name']}"
        if verdicts.get(name, "skip") == "skip" or row["verdict"] not in ("pass", "skip"):
            verdicts[name] = row["verdict"]
    return verdicts


def main(argv: list[str]) -> int:
    """Print the differences and the share that passes; return 1 if there are differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--names", type=Path, help="count these tests only")
    options = parser.parse_args(argv)
    rows = json.loads(options.results.read_text(encoding="utf-8"))
    verdicts = _join_variants(rows)
    if options.names is not None:
        wanted = set(read_names(options.names))
        verdicts = {name: verdict for name, verdict in verdicts.items() if name in wanted}
    lines = compare(verdicts, set(read_names(LIST)))
    passed = sum(verdict == "pass" for verdict in verdicts.values())
    share = 100 * passed / max(1, len(verdicts))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.write(f"{passed} of {len(verdicts)} tests pass ({share:.1f} %)\n")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
