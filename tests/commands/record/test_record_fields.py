"""What the options add to a sample, as perf(1) prints it from the same file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_records import Sample
from tests.commands.conftest import ROOT
from tests.support.host import cgroups

pytestmark = pytest.mark.needs("perf_event", "perf")

CODE = """\
import mmap
memory = mmap.mmap(-1, 64 * mmap.PAGESIZE)
for at in range(0, len(memory), mmap.PAGESIZE):
    memory[at] = 1
"""
PAGE_SIZE_FIELDS = pytest.mark.needs("page_sizes")
PAGE_SIZES = {"4K": 4096, "2M": 1 << 21, "1G": 1 << 30, "N/A": 0}


def record(folder: Path, *arguments: str) -> list[Sample]:
    """Record minor faults of a program: the page is there when the sample is taken."""
    command = [
        sys.executable,
        "-m",
        "purebpf.tools.record",
        "-v",
        "-o",
        "perf.data",
        "-e",
        "minor-faults",
    ]
    done = subprocess.run(
        [*command, "-c", "1", *arguments, "--", sys.executable, "-c", CODE],
        capture_output=True, text=True, check=False, cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    data = (folder / "perf.data").read_bytes()
    file = PerfData(lambda at, size: data[at : at + size], len(data), "perf.data")
    return [each.record for each in file.records() if isinstance(each.record, Sample)]


def script(folder: Path, fields: str) -> list[str]:
    """What perf says of each sample."""
    done = subprocess.run(
        ["perf", "script", "-i", "perf.data", "-F", fields],
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("option", "field", "attribute"),
    [
        ("-d", "addr", "addr"),
        ("--phys-data", "phys_addr", "phys_addr"),
        pytest.param(
            *("--data-page-size", "data_page_size", "data_page_size"), marks=PAGE_SIZE_FIELDS
        ),
        pytest.param(
            *("--code-page-size", "code_page_size", "code_page_size"), marks=PAGE_SIZE_FIELDS
        ),
        ("-W", "weight", "weight"),
        ("--sample-cpu", "cpu", "cpu"),
        ("-T", "time", "time"),
    ],
)
def test_perf_prints_what_we_read(option: str, field: str, attribute: str, tmp_path: Path) -> None:
    samples = record(tmp_path, option)
    shown = [number(each.split()[-1]) for each in script(tmp_path, field)]
    ours = [getattr(each, attribute) for each in samples]
    assert len(ours) >= 64
    if field == "time":
        ours = [time // 1000 for time in ours]  # perf prints microseconds
    assert shown == ours


def number(text: str) -> int:
    """A field as perf script prints it."""
    if text in PAGE_SIZES:
        return PAGE_SIZES[text]
    if found := re.fullmatch(r"\[(\d+)\]|(\d+)\.(\d{6}):", text):  # a CPU; seconds
        return int("".join(filter(None, found.groups())))
    return int(text, 16)


@pytest.mark.needs("cgroup2")
def test_samples_name_their_cgroup(tmp_path: Path) -> None:
    with cgroups.made() as cgroup:
        with cgroups.inside(cgroup):
            samples = record(tmp_path, "--all-cgroups")
        wanted = cgroup.stat().st_ino
    assert {each.cgroup for each in samples} == {wanted}
    done = subprocess.run(
        ["perf", "report", "--stdio", "-i", "perf.data", "-s", "cgroup"],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    assert re.search(rf"100\.00% +/{cgroup.name}\b", done.stdout)


@PAGE_SIZE_FIELDS
def test_perf_record_asks_for_the_same(tmp_path: Path) -> None:
    """The attributes of the event, but for what only one of the two always asks for."""
    options = ("-d", "-W", "--phys-data", "--data-page-size", "--code-page-size", "--all-cgroups")
    record(tmp_path, *options, "--sample-cpu")
    ours = asked(tmp_path)
    command = ["perf", "record", "-q", "-o", "perf.data", "-e", "minor-faults", "-c", "1"]
    subprocess.run([*command, *options, "--sample-cpu", "true"], check=True, cwd=tmp_path)
    theirs = asked(tmp_path)
    assert ours ^ theirs <= {"IDENTIFIER", "ID", "PERIOD", "CPU", "TIME"}


def asked(folder: Path) -> set[str]:
    """The names in sample_type."""
    done = subprocess.run(
        ["perf", "evlist", "-v", "-i", "perf.data"],
        capture_output=True, text=True, check=True, cwd=folder,
    )  # fmt: skip
    found = re.search(r"sample_type(?: \(\w+\))?: ([\w|]+)", done.stdout)
    assert found is not None
    return set(found[1].split("|"))
