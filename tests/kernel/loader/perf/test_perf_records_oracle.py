"""Our decoding of a perf.data file's records against perf(1)'s own."""

from __future__ import annotations

import re
import struct
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from purebpf.abi.perf import PERF_EVENT_ATTR, perf_event_type
from purebpf.loader.perf.perf_attr import record_format
from purebpf.wire.perf_records import Comm, Exit, Fork, Mmap2, Record, Sample
from purebpf.wire.perf_ring import frames

pytestmark = pytest.mark.needs("perf", "perf_event")

WORKLOAD = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; /bin/true"


class Recording(NamedTuple):
    """A perf.data file, its records as we read them, and how many there are of each type."""

    path: Path
    records: list[Record]
    types: Counter[int]


def read(path: Path) -> Recording:
    data = path.read_bytes()
    magic, _, attr_size, attrs, _, start, size = struct.unpack_from("=8s6Q", data)
    assert magic == b"PERFILE2"
    attr = data[attrs : attrs + attr_size - 16].ljust(PERF_EVENT_ATTR.size, b"\0")
    form = record_format(attr)
    section = data[start : start + size]
    types: Counter[int] = Counter()
    records = []
    for kind, misc, begin, end in frames(section):
        types[kind] += 1
        if kind < perf_event_type.PERF_RECORD_MAX:  # the others are perf's own
            records.append(form.decode(kind, misc, section, begin, end))
    return Recording(path, records, types)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("perf") / "perf.data"
    command = ["perf", "record", "-q", "-e", "cpu-clock", "-c", "100000", "-g", "--sample-cpu"]
    subprocess.run([*command, "-o", str(path), "--", "/bin/sh", "-c", WORKLOAD], check=True)
    return read(path)


def perf(recording: Recording, *arguments: str) -> str:
    command = ["perf", *arguments, "-i", str(recording.path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_there_are_as_many_records_of_each_type(recording: Recording) -> None:
    stats = perf(recording, "report", "--stats").partition("cpu-clock stats")[0]
    told = {name: int(count) for name, count in re.findall(r"(\w+) events: +(\d+)", stats)}
    kinds = ("MMAP", "MMAP2", "COMM", "FORK", "EXIT", "SAMPLE", "KSYMBOL")
    ours = {kind: recording.types[perf_event_type[f"PERF_RECORD_{kind}"]] for kind in kinds}
    assert ours == {kind: told.get(kind, 0) for kind in kinds}
    assert ours["SAMPLE"] > 10


def test_processes_and_mappings_are_those_that_perf_prints(recording: Recording) -> None:
    text = perf(recording, "script", "--show-mmap-events", "--show-task-events", "--ns")
    lines = [line for line in text.splitlines() if "PERF_RECORD_" in line]
    theirs = [line.partition(": PERF_RECORD_")[2].strip() for line in lines]
    ours = [written(record) for record in recording.records if written(record)]
    assert sorted(ours) == sorted(line for line in theirs if not line.startswith("MMAP "))


def written(record: Record) -> str:
    match record:
        case Mmap2():
            rights = "".join(
                letter if record.prot & mask else "-"
                for letter, mask in zip("rwx", (1, 2, 4), strict=True)
            )
            sharing = "s" if record.flags & 1 else "p"
            return (
                f"MMAP2 {record.pid}/{record.tid}: [{record.addr:#x}({record.length:#x}) @ "
                f"{hexadecimal(record.pgoff)} {record.maj:02x}:{record.min:02x} {record.ino} 0]: "
                f"{rights}{sharing} {record.filename}"
            )
        case Comm():
            how = " exec" if record.exec else ""
            return f"COMM{how}: {record.comm}:{record.pid}/{record.tid}"
        case Fork() | Exit():
            name = type(record).__name__.upper()
            return f"{name}({record.pid}:{record.tid}):({record.ppid}:{record.ptid})"
        case _:
            return ""


def hexadecimal(number: int) -> str:
    return f"{number:#x}" if number else "0"


def test_samples_have_the_time_the_cpu_and_the_callers_that_perf_prints(
    recording: Recording,
) -> None:
    text = perf(recording, "script", "-F", "pid,tid,cpu,time,ip", "--ns")
    samples = [record for record in recording.records if isinstance(record, Sample)]
    samples.sort(key=lambda sample: sample.time)  # the file is CPU after CPU
    ours = [
        f"{each.pid}/{each.tid} [{each.cpu:03d}] {each.time // 10**9}.{each.time % 10**9:09d}"
        for each in samples
    ]
    theirs = re.findall(r"^ *(\d+/\d+) +(\[\d+\]) +(\d+\.\d+):", text, re.MULTILINE)
    assert ours == [" ".join(parts) for parts in theirs]
    callers = [address for address in samples[0].callchain if address < (1 << 64) - 4095]
    printed = [int(line, 16) for line in text.strip().split("\n\n")[0].splitlines()[1:]]
    assert len(callers) == len(printed) > 0
    # perf prints the user's addresses relative to their file when it finds no symbol there.
    assert [ip for ip in callers if ip >> 63] == [ip for ip in printed if ip >> 63]
