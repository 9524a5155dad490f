"""Run the live tests on the kernels of the matrix and print one table.

    python -m tests.vm.matrix 6.1 6.12 [--tests tests/kernel tests/commands]

Two guests run side by side, one core each. A guest that does not boot is tried once more; a second
failure ends the run with its console. Exit status 1 when a test failed anywhere.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.vm.guest import run
from tests.vm.kernels import SERIES, fetch
from tests.vm.support import Probed

DEFAULT_TESTS = ("tests/kernel", "tests/commands")


class Result(NamedTuple):
    """One kernel's run: counts per test file, skips by reason, the output when something failed."""

    release: str
    seconds: float
    counts: dict[str, Counter[str]]
    skips: Counter[str]
    failed: bool
    output: str


def run_kernel(series: str, tests: list[str], out: Path) -> Result:
    """Boot `series` and run `tests` in it.

    Raises:
        RuntimeError: when the guest died twice; carries the end of its console.
    """
    kernel = fetch(series)
    report = out / f"{series}.xml"
    report.unlink(missing_ok=True)
    command = (
        f"export PUREBPF_EXCLUSIVE_HOST=1 PUREBPF_SLOW_HOST=1 PUREBPF_KERNEL={series} "
        f"PYTHONDONTWRITEBYTECODE=1\n"
        f"{sys.executable} -m tests.vm.support probe /run/out/{series}.json\n"
        f"exec {sys.executable} -m pytest -q -p no:cacheprovider -m 'not slow' "
        f"--junitxml=/run/out/{report.name} {' '.join(tests)}"
    )
    start = time.monotonic()
    for _ in range(2):
        outcome = run(kernel, command, out)
        if outcome.status is not None and report.exists():
            break
    else:
        tail = outcome.console[-4000:] + outcome.output[-4000:]
        raise RuntimeError(f"{series}: the guest died twice:\n{tail}")
    counts, skips = read_report(report)
    record(out / f"{series}.json", counts, skips)
    failed = outcome.status != 0
    return Result(kernel.release, time.monotonic() - start, counts, skips, failed, outcome.output)


def record(path: Path, counts: dict[str, Counter[str]], skips: Counter[str]) -> None:
    """Add the test counts to what the guest said of its features."""
    probed = Probed(**json.loads(path.read_text()))
    total = sum(counts.values(), Counter[str]())
    path.write_text(json.dumps(probed._replace(tests=total, skips=skips)._asdict()))


def read_report(path: Path) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Counts per test file and skips by reason, from a JUnit file."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    skips: Counter[str] = Counter()
    for case in ET.parse(path).iter("testcase"):  # noqa: S314 - pytest wrote it
        name = case.get("classname", "").removeprefix("tests.")
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            counts[name]["failed"] += 1
        elif skipped is not None:
            counts[name]["skipped"] += 1
            skips[skipped.get("message", "").removeprefix("Skipped: ")] += 1
        else:
            counts[name]["passed"] += 1
    return dict(counts), skips


def table(results: dict[str, Result]) -> str:
    """Test file by kernel: passed, failed and skipped."""
    files = sorted({name for result in results.values() for name in result.counts})
    width = max(map(len, files), default=10)
    lines = [" ".join([" " * width, *(f"{result.release:>28}" for result in results.values())])]
    for name in files:
        cells = []
        for result in results.values():
            count = result.counts.get(name, Counter())
            text = ", ".join(f"{number} {what}" for what, number in sorted(count.items()))
            cells.append(f"{text or '-':>28}")
        lines.append(" ".join([f"{name:<{width}}", *cells]))
    for series, result in results.items():
        total = sum(result.counts.values(), Counter[str]())
        summary = ", ".join(f"{number} {what}" for what, number in sorted(total.items()))
        lines.append(f"{series} ({result.release}): {summary}, in {result.seconds:.0f} s")
        lines += [f"  {number:4d} skipped: {why}" for why, number in result.skips.most_common()]
    return "\n".join(lines)


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kernels", nargs="*", default=["6.1", "6.12"])
    parser.add_argument("--tests", nargs="+", default=list(DEFAULT_TESTS))
    parser.add_argument("--out", type=Path, default=Path("build/vm"))
    options = parser.parse_args()
    kernels = list(SERIES) if options.kernels == ["all"] else options.kernels
    if unknown := [name for name in kernels if name not in SERIES]:
        parser.error(f"no such kernel: {', '.join(unknown)}; there are {', '.join(SERIES)}")
    options.out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        runs = pool.map(lambda name: run_kernel(name, options.tests, options.out), kernels)
        results = dict(zip(kernels, runs, strict=True))
    for series, result in results.items():
        if result.failed:
            print(f"== {series}\n{result.output}")
    print(table(results))
    return 1 if any(result.failed for result in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
