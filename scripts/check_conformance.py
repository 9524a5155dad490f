"""Compare a run of bpftrace's runtime tests with the lists of names in tests/data.

    python scripts/check_conformance.py RESULTS.json [--in-guests]

RESULTS.json is what scripts/run_conformance.py --json wrote. The lists of failing tests may only
shrink: a test that fails and is not in its list is an error, and so is a test that passes and is in
it. A test that is skipped, or that the run lacks, has failed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = ["HERE", "IN_GUESTS", "Lists", "compare", "main", "read_names", "report"]


class Lists(NamedTuple):
    """Files with names: the tests that count, and those of them that may fail."""

    tests: Path
    failing: Path


_DATA = Path(__file__).parents[1] / "tests" / "data"
HERE = Lists(_DATA / "bpftrace_tests.txt", _DATA / "bpftrace_failing.txt")
"""Tests for a machine without kprobes, fentry and iterators."""
IN_GUESTS = Lists(_DATA / "bpftrace_tests_in_guests.txt", _DATA / "bpftrace_failing_in_guests.txt")
"""Tests of those, for a guest."""


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


def report(rows: Iterable[Mapping[str, str]], lists: Lists, *, is_whole: bool = True) -> int:
    """Print the differences and the share that passes; return 1 if there are differences.

    Args:
        rows: the results.
        lists: the names to compare them with.
        is_whole: False if only some tests were run.
    """
    verdicts, names = _join_variants(rows), read_names(lists.tests)
    counted = {
        name: verdicts.get(name, "not run") for name in names if is_whole or name in verdicts
    }
    lines = compare(counted, set(read_names(lists.failing)))
    passed = sum(verdict == "pass" for verdict in counted.values())
    share = 100 * passed / max(1, len(counted))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.write(f"{passed} of {len(counted)} tests pass ({share:.1f} %)\n")
    return int(bool(lines))


def main(argv: list[str]) -> int:
    """Compare the results of a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--in-guests", action="store_true", help="of tests that need a guest")
    options = parser.parse_args(argv)
    rows = json.loads(options.results.read_text(encoding="utf-8"))
    return report(rows, IN_GUESTS if options.in_guests else HERE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
