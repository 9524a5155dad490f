"""The runtime tests in a copy of bpftrace's source: blocks of lines, a word and its text each.

A block ends at an empty line. The words that are used here:

    NAME, PROG or RUN         the test, and its script or shell line
    EXPECT...                 lines, regular expressions or files that the output must have
    TIMEOUT                   seconds after the probes are attached
    BEFORE, AFTER             programs beside it, started before and after attaching
    SETUP, CLEANUP            shell lines
    REQUIRES..., ARCH, ...    a test that does not run here
    WILL_FAIL, RETURN_CODE    the exit status
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

__all__ = ["KINDS", "Case", "is_as_expected", "read_cases"]

KINDS: Mapping[str, str] = {
    "kprobe": r"\b(?:kprobe|kretprobe|k|kr)\s*:",
    "fentry": r"\b(?:fentry|fexit|kfunc|kretfunc|f|fr)\s*:",
    "iter": r"\b(?:iter|it)\s*:",
    "watchpoint": r"\b(?:watchpoint|asyncwatchpoint|w)\s*:",
    "hardware": r"\b(?:hardware|h)\s*:",
}
"""Probes that not every kernel has, and the forms that scripts give them."""
_WORDS = frozenset(
    {"NAME", "RUN", "PROG", "EXPECT", "EXPECT_NONE", "EXPECT_REGEX", "EXPECT_REGEX_NONE",
     "EXPECT_FILE", "EXPECT_JSON", "TIMEOUT", "BEFORE", "AFTER", "SETUP", "CLEANUP", "MIN_KERNEL",
     "MAX_KERNEL", "REQUIRES", "ENV", "ARCH", "REQUIRES_FEATURE", "WILL_FAIL", "NEW_PIDNS",
     "SKIP_IF_ENV_HAS", "RETURN_CODE", "LOCALIZE_TIMESTAMPS"}
)  # fmt: skip
_CONTINUED = frozenset({"PROG", "EXPECT", "EXPECT_REGEX"})


class Case:
    """One test.

    Attributes:
        name: of the file and the test, with a dot between them.
        source: its script or its shell line.
        expects: pairs of a word and what the output must have.
    """

    def __init__(self, suite: str, rows: Sequence[tuple[str, str]]) -> None:
        self._texts: dict[str, list[str]] = {}
        for word, text in rows:
            if word not in _WORDS:
                raise ValueError(f"{suite}: unknown word {word}")
            self._texts.setdefault(word, []).append(text)
        self.suite = suite
        self.name = f"{suite}.{self.first('NAME')}"
        self.is_script = "PROG" in self._texts
        self.source = self.first("PROG") or self.first("RUN")
        self.expects = [row for row in rows if row[0].startswith("EXPECT")]

    def first(self, word: str, default: str = "") -> str:
        """Return the text of a word's first line."""
        return self._texts.get(word, [default])[0]

    def all(self, word: str) -> list[str]:
        """Return the texts of all lines of a word."""
        return self._texts.get(word, [])

    def has(self, word: str) -> bool:
        """Return True if the test has a line with the word."""
        return word in self._texts

    @property
    def is_alone(self) -> bool:
        """True if no other test may run beside it: it sends signals to all processes of a name."""
        texts = [text for texts in self._texts.values() for text in texts]
        return any(word in text for text in texts for word in ("pkill", "pidof"))

    def kinds(self) -> set[str]:
        """Return the probes of `KINDS` that the test uses."""
        return {kind for kind, pattern in KINDS.items() if re.search(pattern, self.source)}

    def missing(self, kinds: set[str]) -> str:
        """Return what this machine, which has the probes of `kinds`, lacks for the test, or ""."""
        machine = os.uname()
        own = {machine.machine, "le"}
        for words in self.all("ARCH"):
            names = {name.strip() for name in words.split("|")}
            wanted = {name for name in names if not name.startswith("!")}
            if (wanted and not wanted & own) or {name[1:] for name in names - wanted} & own:
                return f"another machine: {words}"
        release = _numbers(machine.release)
        if any(release < _numbers(text) for text in self.all("MIN_KERNEL")):
            return "a newer kernel"
        if any(release > _numbers(text) for text in self.all("MAX_KERNEL")):
            return "an older kernel"
        if self.has("NEW_PIDNS"):
            return "a PID namespace"
        return ", ".join(sorted(self.kinds() - kinds))


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(text) for text in re.findall(r"\d+", release)[:2])


def read_cases(folder: Path) -> list[Case]:
    """Return the tests of all files of a folder in the order of their names."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name[0] != ".")
    return [Case(path.name, rows) for path in files for rows in _blocks(path)]


def _blocks(path: Path) -> Iterator[list[tuple[str, str]]]:
    rows: list[tuple[str, str]] = []
    for line in [*path.read_text(encoding="utf-8").split("\n"), ""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if rows:
                yield rows
            rows = []
            continue
        word, text = rows[-1] if rows else ("", "")
        indent = len(word) + 1
        if word in _CONTINUED and line[:indent].isspace():
            rows[-1] = (word, f"{text}\n{line[indent:]}")
            continue
        word, _, text = line.strip().partition(" ")
        rows.append((word, text.strip()))


def is_as_expected(case: Case, word: str, text: str, output: str, folder: Path) -> bool:
    """Return True if the output of a test is what one of its lines expects."""
    if word in ("EXPECT", "EXPECT_NONE"):
        found = re.search(rf"^\s*{re.escape(text)}\s*$", output, re.MULTILINE)
        return bool(found) == (word == "EXPECT")
    if word in ("EXPECT_REGEX", "EXPECT_REGEX_NONE"):
        return bool(re.search(text, output, re.MULTILINE)) == (word == "EXPECT_REGEX")
    wanted = (folder / text).read_text(encoding="utf-8").strip()
    if word == "EXPECT_FILE":
        if case.has("LOCALIZE_TIMESTAMPS"):
            moment = int(case.first("LOCALIZE_TIMESTAMPS"))
            wanted = time.strftime(wanted, time.localtime(moment))
        return output.strip() == wanted
    wanted_lines = wanted.splitlines() if text.endswith(".ndjson") else [wanted]
    lines = output.strip().splitlines()
    try:
        return list(map(json.loads, lines)) == list(map(json.loads, wanted_lines))
    except ValueError:
        return False
