"""What came of a kernel's run: read from the files that it left, and shown side by side."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

__all__ = ["File", "Result", "failing", "join", "missing", "read", "table"]


class File(NamedTuple):
    """One test file on one kernel: how many passed, failed and were skipped, and these by why."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    skips: Mapping[str, int] = MappingProxyType({})
    seconds: float = 0.0


class Result(NamedTuple):
    """One kernel's run.

    Attributes:
        release: what uname(2) said.
        features: whether the kernel has each, as probed.
        used: those that a test made use of.
        files: by test file, without "tests/" and ".py".
        again: the tests that failed and were tried once more.
    """

    release: str
    seconds: float
    features: dict[str, bool]
    used: frozenset[str]
    files: dict[str, File]
    failed: bool
    output: str
    again: tuple[str, ...] = ()

    @property
    def total(self) -> File:
        """All files together."""
        return File(*(sum(each[i] for each in self.files.values()) for i in range(3)))

    @property
    def skips(self) -> Counter[str]:
        """How many tests each reason kept from running."""
        return sum((Counter(each.skips) for each in self.files.values()), Counter())

    def followed_by(self, other: Result) -> Result:
        """Both, where the same kernel ran twice: a file that both ran counts as it did last."""
        return other._replace(
            seconds=self.seconds + other.seconds,
            features=self.features | other.features,
            used=self.used | other.used,
            files=self.files | other.files,
            again=self.again + other.again,
        )


def read(folder: Path, seconds: float = 0, *, failed: bool = False, output: str = "") -> Result:
    """What `report.xml` and `features.json` in `folder` say."""
    asked = json.loads((folder / "features.json").read_text())
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    skips: dict[str, Counter[str]] = defaultdict(Counter)
    times: Counter[str] = Counter()
    for case in ET.parse(folder / "report.xml").iter("testcase"):  # noqa: S314 - pytest wrote it
        name = case.get("classname", "").removeprefix("tests.").replace(".", "/")
        times[name] += float(case.get("time", 0))
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            counts[name]["failed"] += 1
        elif skipped is not None:
            counts[name]["skipped"] += 1
            skips[name][skipped.get("message", "").removeprefix("Skipped: ")] += 1
        else:
            counts[name]["passed"] += 1
    files = {
        name: File(count["passed"], count["failed"], count["skipped"], skips[name], times[name])
        for name, count in sorted(counts.items())
    }
    release, features, used = asked["release"], asked["features"], frozenset(asked["used"])
    again = tuple(re.findall(r"^RERUN (\S.*)$", output, re.MULTILINE))
    return Result(release, seconds, features, used, files, failed, output, again)


def join(parts: list[Path], folder: Path) -> None:
    """Write the results of processes that shared the tests of one kernel as the results of one."""
    suites = ET.Element("testsuites")
    asked: dict[str, Any] = {}
    used: set[str] = set()
    for part in parts:
        suites.extend(ET.parse(part / "report.xml").getroot())  # noqa: S314 - pytest wrote it
        asked = json.loads((part / "features.json").read_text())
        used |= set(asked["used"])
    ET.ElementTree(suites).write(folder / "report.xml", encoding="utf-8", xml_declaration=True)
    (folder / "features.json").write_text(json.dumps(asked | {"used": sorted(used)}))
    outputs = [(part / "output").read_text(errors="replace") for part in parts]
    (folder / "output").write_text("\n".join(outputs))


def failing(output: str) -> list[str]:
    """The tests that pytest's summary (-rfE) names, as its command line takes them."""
    name = r"tests/\S+?\.py::\w+(?:::\w+)*(?:\[.*?\](?= - |$))?"
    found = re.findall(rf"^(?:FAILED|ERROR) ({name})", output, re.MULTILINE)
    return list(dict.fromkeys(found))


def missing(reason: str) -> str:
    """The feature that a skip was for: `kprobes` of "needs kprobes: no /sys/..."."""
    need, _, _ = reason.removeprefix("needs ").partition(":")
    return need if reason.startswith("needs ") else reason


def cell(file: File | None) -> str:
    """`"12 passed, 1 skipped (kprobes)"`."""
    if file is None:
        return "-"
    told = [
        f"{count} {what}"
        for count, what in ((file.failed, "FAILED"), (file.passed, "passed"))
        if count
    ]
    if file.skipped:
        reasons = sorted({missing(why) for why in file.skips})
        told.append(f"{file.skipped} skipped ({', '.join(reasons)})")
    return ", ".join(told)


def table(results: dict[str, Result]) -> str:
    """Test file by kernel; then for each kernel the sum, its slowest files, reruns and skips."""
    names = sorted({name for result in results.values() for name in result.files})
    rows = [["", *(f"{name} ({result.release})" for name, result in results.items())]]
    rows += [
        [name, *(cell(result.files.get(name)) for result in results.values())] for name in names
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    for name, result in results.items():
        passed, failed, skipped, *_ = result.total
        lines.append(
            f"{name}: {passed} passed, {failed} failed, {skipped} skipped in {result.seconds:.0f} s"
        )
        slowest = sorted(result.files.items(), key=lambda item: -item[1].seconds)[:5]
        told = ", ".join(f"{file} {found.seconds:.0f} s" for file, found in slowest)
        lines.append(f"  slowest: {told}")
        lines += [f"  tried again: {test}" for test in result.again]
        lines += [f"  {count:4d} skipped: {why}" for why, count in result.skips.most_common()]
    return "\n".join(lines)
