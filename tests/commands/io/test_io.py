"""io against a block device of the test's own, with /proc/diskstats as the truth."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from purebpf.measure.targets import NoSuchTargetError
from purebpf.tools.io import Io, IoOptions, Request
from tests.support.environment import run
from tests.support.host.loops import loop_device, written

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "loop_device")

WRITES, READS = 13, 7
BLOCK = 16384


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[str]:
    with loop_device(tmp_path / "disk", 32 << 20) as name:
        yield name


def direct(disk: str, writes: int, reads: int) -> int:
    """So many requests past the page cache, one after the other; the child that made them."""
    return in_child(lambda: _direct(disk, writes, reads))


def in_child(work: Callable[[], None]) -> int:
    """Do something in a process of its own: a measurement leaves its own process out."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return pid


def _direct(disk: str, writes: int, reads: int) -> None:
    with mmap.mmap(-1, BLOCK) as page:
        fd = os.open(f"/dev/{disk}", os.O_RDWR | os.O_DIRECT)
        for turn in range(writes):
            os.pwritev(fd, [page], 2 * turn * BLOCK)
        for turn in range(reads):
            os.preadv(fd, [page], 2 * turn * BLOCK)


def test_counts_and_bytes_are_those_of_diskstats(disk):
    with Io(IoOptions(device=disk)) as io:
        before = written(disk)
        direct(disk, WRITES, READS)
        after = written(disk)
        ending = io.stop()
    rows = {row.op: row for row in io.rows}
    assert rows.keys() == {"read", "write"}
    assert rows["write"].requests == WRITES == after["writes"] - before["writes"]
    assert rows["read"].requests == READS == after["reads"] - before["reads"]
    assert rows["write"].bytes == 512 * (after["write_sectors"] - before["write_sectors"])
    assert rows["read"].bytes == READS * BLOCK
    for row in io.rows:
        assert sum(row.buckets) == row.requests
        assert row.disk == disk
        assert (row.errors, row.queued_ns < row.total_ns) == (0, True)
    assert ending.events == ()
    assert not ending.loss.any


def test_slow_requests_are_shown_one_by_one(disk):
    with Io(IoOptions(device=disk, slower_ms=0)) as io:
        pid = direct(disk, WRITES, READS)
        events = io.stop().events
    assert len(events) == WRITES + READS
    assert {(event.pid, event.disk, event.bytes) for event in events} == {(pid, disk, BLOCK)}
    sectors = [event.sector for event in events if event.op == "write"]
    assert sectors == [turn * 2 * BLOCK // 512 for turn in range(WRITES)]
    assert all(0 <= event.queued_ns < event.took_ns for event in events)


def test_requests_below_the_threshold_are_only_counted(disk):
    with Io(IoOptions(device=disk, slower_ms=1e9)) as io:
        direct(disk, WRITES, 0)
        assert io.stop().events == ()
    assert sum(row.requests for row in io.rows) == WRITES


def test_only_the_target_and_the_device_count(disk):
    with Io(IoOptions(device=disk, pids=(os.getppid(),))) as io:
        direct(disk, 3, 3)
        io.stop()
    assert io.rows == ()
    with Io(IoOptions(device="7:1048575")) as io:
        direct(disk, 3, 3)
        io.stop()
    assert io.rows == ()


def test_rows_by_process(disk):
    with Io(IoOptions(device=disk, by="process")) as io:
        pid = direct(disk, WRITES, 0)
        io.stop()
    comm = Path("/proc/self/comm").read_text().strip()
    assert [(row.pid, row.comm, row.op, row.requests) for row in io.rows] == [
        (pid, comm, "write", WRITES)
    ]


def test_a_failed_request_says_why(disk, tmp_path):
    with Io(IoOptions(device=disk, only_failed=True, slower_ms=0)) as io:
        os.truncate(tmp_path / "disk", BLOCK)
        try:
            direct(disk, 0, 2)
            pytest.skip("a loop device reads zeros behind the end of its file here: no EIO")
        except AssertionError:  # the child failed with EIO
            pass
        events = io.stop().events
    failed = [event for event in events if event.disk == disk]
    assert failed
    assert {(event.op, event.error) for event in failed} == {("read", "IOERR")}


def save(folder: Path) -> None:
    folder.mkdir()
    with (folder / "known.name").open("wb") as file:
        file.write(bytes(BLOCK))
        file.flush()
        os.fsync(file.fileno())


@pytest.mark.needs("mkfs.ext4", "ext4", "mount_namespace")
def test_a_file_has_its_name(disk, tmp_path):
    """Also where a worker of the kernel writes it back."""
    subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", f"/dev/{disk}"], check=True)
    place = tmp_path / "mounted"
    place.mkdir()
    subprocess.run(["mount", f"/dev/{disk}", str(place)], check=True)
    try:
        with Io(IoOptions(device=disk, by="file", slower_ms=0)) as io:
            in_child(lambda: save(place / "folder"))
            events: tuple[Request, ...] = io.stop().events
    finally:
        subprocess.run(["umount", str(place)], check=True)
    names = {row.file: row for row in io.rows if row.op == "write"}
    assert names["folder/known.name"].bytes == BLOCK
    assert "folder/known.name" in {event.file for event in events}


def test_a_device_that_does_not_exist_is_said():
    with pytest.raises(NoSuchTargetError, match=r"no block device is called 'nodisk'.*lsblk"):
        Io(IoOptions(device="nodisk")).__enter__()
    with pytest.raises(NoSuchTargetError, match="expected a name or MAJOR:MINOR"):
        Io(IoOptions(device="a:b")).__enter__()


def test_the_command_shows_a_table_and_json(disk):
    line = ("dd", "if=/dev/zero", f"of=/dev/{disk}", "bs=16k", "count=11", "oflag=direct")
    text = run("io", "--device", disk, "--hist", "--strict", "--", *line)
    assert text.returncode == 0, text.stderr
    head, row, *histogram = text.stdout.splitlines()
    assert head.split()[:4] == ["DEVICE", "OP", "COUNT", "ERRORS"]
    assert row.split()[:5] == [disk, "write", "11", "0", "180k"]
    assert "distribution" in histogram[0]
    assert all(len(line) <= 80 for line in text.stdout.splitlines())
    result = run("io", "--device", disk, "--slower", "0", "--format", "json", "--", *line)
    *requests, summary, loss = map(json.loads, result.stdout.splitlines())
    assert [request["comm"] for request in requests] == ["dd"] * 11
    (row,) = summary["rows"]
    assert (row["requests"], sum(count for *_, count in row["buckets"])) == (11, 11)
    assert not loss["loss"]["events_full"]
