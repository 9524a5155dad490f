"""What a bench found: shown as a table, kept as JSON, and written into docs/performance.md.

    python bench/results.py     # the tables of docs/performance.md, from bench/results/*.json

Every bench is a function from its options to figures, and ends in `run`. A figure is a cost, so
less is better; with a peer, what counts is the ratio of both, measured in turn in one run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
FOLDER = HERE / "results"
PAGE = HERE.parent / "docs" / "performance.md"


class Figure(NamedTuple):
    """One measured cost.

    Attributes:
        what, ours, unit: what was measured, the figure, its unit.
        peer, theirs: who does the same, and what it cost there; none: no other tool does.
        limit: the most that the ratio of ours to theirs should be, without a peer ours; none: it
            is shown for information.
    """

    what: str
    ours: float
    unit: str
    peer: str = ""
    theirs: float | None = None
    limit: float | None = None

    @property
    def ratio(self) -> float | None:
        """Ours as a part of theirs."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def missed(self) -> bool:
        """Whether the limit is exceeded."""
        judged = self.ours if self.ratio is None else self.ratio
        return self.limit is not None and judged > self.limit


class Run(NamedTuple):
    """What one run of a bench found.

    Attributes:
        figures: the medians, or minima, of its rounds.
        machine: the hardware and software they depend on.
        rounds: how often each side was measured.
        load: the load average before and after.
    """

    figures: list[Figure]
    machine: str
    rounds: int
    load: tuple[float, float]


Measure = Callable[[argparse.Namespace], Iterable[Figure]]


def parser(text: str | None, rounds: int) -> argparse.ArgumentParser:
    """The options that every bench has; `text` is its docstring."""
    made = argparse.ArgumentParser(description=(text or "").partition("\n")[0])
    made.add_argument("--rounds", type=int, default=rounds, metavar="N")
    made.add_argument("--json", type=Path, metavar="FILE", help="default: bench/results/NAME.json")
    return made


def run(measure: Measure, options: argparse.Namespace) -> int:
    """Measure, show and keep; the exit status is 1 if a limit is exceeded."""
    before = os.getloadavg()[0]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends the load, too
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed command is compiled already
    figures = list(measure(options))
    bench_run = Run(figures, machine(), options.rounds, (before, os.getloadavg()[0]))
    path = options.json or FOLDER / f"{Path(sys.argv[0]).stem}.json"
    path.parent.mkdir(exist_ok=True)
    saved = bench_run._asdict() | {"figures": [figure._asdict() for figure in figures]}
    path.write_text(json.dumps(saved, indent=1) + "\n")
    print(table(bench_run))
    return int(any(figure.missed for figure in figures))


def read(path: Path) -> Run:
    """A run that was kept."""
    saved = json.loads(path.read_text())
    return Run(**saved | {"figures": [Figure(**figure) for figure in saved["figures"]]})


def machine() -> str:
    """The hardware and software that a figure depends on."""
    text = Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.+)", text)
    kernel = platform.release().split("-")[0]
    processor = model[1] if model else platform.machine()
    return (
        f"{os.cpu_count()} CPUs ({processor}), Linux {kernel}, Python {platform.python_version()}"
    )


def table(bench_run: Run) -> str:
    """The figures as Markdown, and what they were measured on."""
    lines = ["| what | purebpf | peer | ratio | aim |", "|---|---|---|---|---|"]
    for row in bench_run.figures:
        theirs = "" if row.theirs is None else f"{row.peer}: {number(row.theirs)} {row.unit}"
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        aim = "" if row.limit is None else f"<= {number(row.limit)}{', missed' * row.missed}"
        lines.append(f"| {row.what} | {number(row.ours)} {row.unit} | {theirs} | {ratio} | {aim} |")
    before, after = bench_run.load
    load = f"load average {before:.1f} before, {after:.1f} after"
    return "\n".join([*lines, "", f"{bench_run.machine}; {bench_run.rounds} rounds; {load}."])


def number(value: float) -> str:
    """Three digits that matter, and no more than that behind the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def main() -> int:
    """Put the kept tables where the page has their places."""
    page = PAGE.read_text()
    for path in sorted(FOLDER.glob("*.json")):
        begin, end = f"<!-- {path.stem} -->\n", f"<!-- /{path.stem} -->"
        before, _, rest = page.partition(begin)
        _, marker, after = rest.partition(end)
        if not marker:
            print(f"{PAGE.name} has no place for {path.stem}", file=sys.stderr)
            continue
        page = f"{before}{begin}{table(read(path))}\n{end}{after}"
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
