"""perf itself reads the perf.data files of our profiles, and counts the same."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from purebpf.observe.saved import perf_data_loader, profile_loader
from purebpf.observe.saved.perf_data_loader import LoadOptions
from purebpf.results import Profile
from purebpf.results.shape import table
from tests.commands.conftest import ROOT, Workloads

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc", "perf")

SAMPLE = re.compile(r"^\S.* +(\d+) ([\w-]+): *\n((?:\t.*\n)*)", re.MULTILINE)


def ran(command: str, *arguments: str) -> None:
    words = [sys.executable, "-m", "purebpf", command, *arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def perf(*arguments: str) -> str:
    return subprocess.run(["perf", *arguments], capture_output=True, text=True, check=True).stdout


def leaves(profile: Profile) -> Counter[str]:
    """The weight of each innermost function."""
    return +Counter({line.function.name: line.own for line in table.lines(profile)})


def perf_leaves(file: str) -> tuple[str, Counter[str]]:
    """The event, and the same as perf script has it."""
    event, found = "", Counter[str]()
    text = perf("script", "-i", file, "-F", "comm,pid,tid,period,event,ip,sym")
    for weight, event, stack in SAMPLE.findall(text):  # noqa: B007 - the last one's name
        names = re.findall(r"^\t *[0-9a-f]+ (.+)$", stack, re.MULTILINE)
        if names:
            found[names[0]] += int(weight)
    return event, found


@pytest.mark.parametrize(
    ("command", "options", "event"),
    [
        ("profile", ["-F", "999"], "cpu-clock"),
        ("offcpu", ["--thresh", "0"], "offcpu-time"),
        ("wall", [], "wall-time"),
    ],
)
def test_perf_finds_the_same_functions(
    command: str, options: list[str], event: str, workloads: Workloads, tmp_path: Path
) -> None:
    ours, theirs = str(tmp_path / "a.json"), str(tmp_path / "a.data")
    with workloads.running(*(["split"] if command == "profile" else ["wait", "three"])) as pid:
        ran(command, *options, "-p", str(pid), "-o", ours, "-o", theirs, "0.5")
        profile = profile_loader.read(ours)
        name, found = perf_leaves(theirs)
        again = profile_loader.read(theirs)
    if command != "profile" or name == "cpu-clock":
        assert name == event
    assert profile.total > 0
    assert found == leaves(profile)
    assert (again.total, again.unit) == (profile.total, profile.unit)
    assert leaves(again) == leaves(profile)


def test_perf_report_adds_up_periods(workloads: Workloads, tmp_path: Path) -> None:
    with workloads.running("split") as pid:
        ran("profile", "-F", "999", "-p", str(pid), "-o", str(tmp_path / "a.json"), "0.5")
    ran("convert", str(tmp_path / "a.json"), "-o", str(tmp_path / "a.data"))
    options = ("--stdio", "--no-children", "-g", "none", "-F", "period,sym", "-s", "sym")
    told = perf("report", "-i", str(tmp_path / "a.data"), *options)
    lines = re.findall(r"^ *(\d+) +\[.\] (\w+)", told, re.MULTILINE)
    found = {name: int(weight) for weight, name in lines}
    expected = leaves(profile_loader.read(str(tmp_path / "a.json")))
    for function in ("spend_seventy", "spend_thirty"):
        assert found[function] == expected[function] > 0


@pytest.mark.any_kernel
def test_a_group_of_events_is_split_as_perf_splits_it(tmp_path: Path) -> None:
    file = str(tmp_path / "group.data")
    touch = "import mmap\nfor n in range(99):\n  m = mmap.mmap(-1, 1 << 18)\n"
    touch += "  for at in range(0, 1 << 18, 4096): m[at] = 1\n  sum(range(20000))"
    options = ("-q", "-F", "499", "-e", "{cpu-clock,page-faults}:S", "-o", file)
    perf("record", *options, "--", sys.executable, "-c", touch)
    expected = Counter[str]()
    told = perf("script", "-i", file, "-F", "period,event")
    for period, event in re.findall(r"(\d+) +([\w-]+): *$", told, re.MULTILINE):
        expected[event] += int(period)
    assert set(expected) == {"cpu-clock", "page-faults"}
    found = {
        event: perf_data_loader.read(file, LoadOptions(event, "period")).profile.total
        for event in expected
    }
    assert found == expected
