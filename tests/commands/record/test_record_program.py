"""A user's own program on samples: all its records are in the file or counted as lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from purebpf.loader.perf.event_parser import EventError
from purebpf.observe.instruments.own_program import NoSuchProgramError
from purebpf.observe.saved.perf_data_loader import opened
from purebpf.observe.saved.program_records import ProgramRecord, RecordTypes, read_records
from purebpf.tools.record import EventOption, Recorder, RecordOptions
from purebpf.tools.record.loss import Recorded, losses
from purebpf.tools.report.__main__ import main as report
from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("perf_event")

OBJECT = str(ROOT / "tests" / "data" / "sample_programs.bpf.o")
PAGES = 1009
CODE = (
    "import mmap, os, sys\n"
    f"m = mmap.mmap(-1, {PAGES} << 12); m.madvise(mmap.MADV_NOHUGEPAGE)\n"
    "sys.stdout.write('.'); sys.stdout.flush(); os.read(0, 1)\n"
    f"for at in range({PAGES}): m[at << 12] = 1\n"
    "sys.stdout.write('.'); sys.stdout.flush(); os.read(0, 1)\n"
)


def record_faults(folder: Path, program: str, **more: Any) -> Recorded:
    """Record a process that faults a known number of times, and hardly more."""
    with subprocess.Popen(
        [sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.read(1)
        options = RecordOptions(
            events=(EventOption("page-faults"),),
            period=1,
            output=str(folder / "perf.data"),
            program=f"{OBJECT}:{program}",
            pids=(child.pid,),
        )
        with Recorder(options._replace(**more)) as recorder:
            child.stdin.write(b".")
            child.stdout.read(1)
            recorded = recorder.stop()
        child.stdin.write(b".")
    return recorded


def records_in(path: Path) -> tuple[list[ProgramRecord], dict[int, str]]:
    with opened(str(path)) as file:
        types = RecordTypes(file)
        return list(read_records(file, types)), types.names


def test_each_sample_has_its_record_beside_it(tmp_path: Path) -> None:
    recorded = record_faults(tmp_path, "keep_all")
    assert not losses(recorded).any
    assert recorded.samples == recorded.records >= PAGES
    records, names = records_in(tmp_path / "perf.data")
    assert [record.value.number for record in records] == list(range(recorded.records))
    assert set(names.values()) == {"struct numbered"}
    assert {record.event for record in records} == {"short_records"}
    assert all(record.value.place.comm == record.comm for record in records)
    assert all(record.value.place.cpu == record.cpu for record in records)
    assert recorded.program_dropped == 0


def test_each_record_without_room_is_counted(tmp_path: Path) -> None:
    recorded = record_faults(tmp_path, "drop_all", ring_pages=8)  # nobody reads until the end
    assert recorded.samples == 0
    assert recorded.program_dropped >= PAGES
    assert recorded.records_lost > 0
    assert recorded.records > 0
    assert recorded.records + recorded.records_lost == recorded.program_dropped
    lost = {cause.name: cause.lost for cause in losses(recorded).causes}
    assert lost["records_lost"] == recorded.records_lost
    records, _ = records_in(tmp_path / "perf.data")
    assert len(records) == recorded.records


def test_the_program_sees_what_the_filter_leaves(tmp_path: Path) -> None:
    event = EventOption("page-faults", ("ip == 1",))
    recorded = record_faults(tmp_path, "keep_all", events=(event,))
    assert (recorded.samples, recorded.records, recorded.program_dropped) == (0, 0, 0)
    assert recorded.dropped >= PAGES


def test_report_counts_records_by_a_member_of_a_member(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = record_faults(tmp_path, "keep_all")
    path = str(tmp_path / "perf.data")
    assert report(["-i", path, "--records", "place.comm", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    (count,) = json.loads(out)["counts"]
    assert count["records"] == recorded.records
    assert "records of short_records: struct numbered" in err
    assert report(["-i", path, "--records"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + recorded.records
    assert "short_records: number=0 place={cpu=" in lines[1]
    assert lines[1].endswith("bytes=01020304")
    assert report(["-i", path, "--records", "size"]) == 2
    assert "known: number, place, bytes" in " ".join(capsys.readouterr().err.split())
    assert report(["-i", path]) == 0
    assert f"also in the file: {recorded.records} records" in capsys.readouterr().err


@pytest.mark.needs("perf")
def test_perf_reads_the_same_records(tmp_path: Path) -> None:
    recorded = record_faults(tmp_path, "keep_all")
    command = ["perf", "script", "--force", "-i", str(tmp_path / "perf.data")]
    shown = subprocess.run(command, capture_output=True, check=True).stdout
    assert shown.count(b" short_records: ") == recorded.records
    assert shown.count(b"BPF output: 0000:") == recorded.records


@pytest.mark.parametrize(
    ("program", "event", "error", "text"),
    [
        (f"{OBJECT}:nothing", "page-faults", NoSuchProgramError, f"{OBJECT}:keep_all or"),
        (OBJECT, "page-faults", NoSuchProgramError, "several programs"),
        (f"{OBJECT}:another_kind", "page-faults", NoSuchProgramError, "does not have the program"),
        (f"{OBJECT}:keep_all", "sched:sched_switch", EventError, "not of tracepoints"),
        ("/nowhere.o", "page-faults", OSError, "/nowhere.o"),
    ],
)
def test_mistakes_are_explained(
    tmp_path: Path, program: str, event: str, error: type[Exception], text: str
) -> None:
    options = RecordOptions(
        events=(EventOption(event),), program=program, output=str(tmp_path / "perf.data")
    )
    with pytest.raises(error, match=text.replace(".", r"\.")):
        Recorder(options).__enter__()
    assert list(tmp_path.iterdir()) == []
