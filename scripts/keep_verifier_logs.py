"""Keep what each kernel's verifier said to the programs that it must refuse.

    sh scripts/test_kernels.sh 5.10 6.1 --tests tests/kernel/loader/load/test_verifier_advice.py
    python scripts/keep_verifier_logs.py build/vm

One file in tests/data/verifier_logs for each kernel that ran those tests. The unit tests read
them, so that a change of the advice is checked with the words of all of them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "tests" / "data" / "verifier_logs"
PROPERTY = "verifier_log "


def keep(folder: Path) -> Path | None:
    """Write the logs of one kernel's run; None if there are none in its report."""
    report = ET.parse(folder / "report.xml")  # noqa: S314 - pytest wrote it
    logs = {
        entry.attrib["name"].removeprefix(PROPERTY): entry.attrib["value"]
        for entry in report.iter("property")
        if entry.attrib["name"].startswith(PROPERTY)
    }
    if not logs:
        return None
    release = json.loads((folder / "features.json").read_text())["release"]
    series = re.match(r"\d+\.\d+", release)
    assert series, release
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{series[0]}.json"
    path.write_text(json.dumps(logs, indent=1, sort_keys=True) + "\n")
    return path


def main() -> int:
    """Keep the logs of every run below a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, help="the folder of the matrix, as build/vm")
    runs = parser.parse_args().runs
    kept = [keep(report.parent) for report in sorted(runs.glob("*/report.xml"))]
    for path in filter(None, kept):
        print(path)
    return 0 if any(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
