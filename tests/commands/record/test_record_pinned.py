"""The recorder of ordinary users, with the filter programs that root has pinned for them."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_records import LostSamples, Sample
from tests.support.environment import ROOT, environment, said
from tests.support.host.privilege import reachable
from tests.support.host.users import public_bpffs, users_sampling

pytestmark = pytest.mark.needs(
    "bpf", "bpffs", "perf_event", "vmlinux_btf", "setpriv", "mount_namespace", "pinned_by_users"
)

ANN, BOB = 4711, 4712
KERNEL = 0xFFFF000000000000

FAMILY = """\
import mmap, os
def touch(pages):
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE)
    for at in range(0, len(memory), mmap.PAGESIZE):
        memory[at] = 1
for _ in range(3):
    if os.fork() == 0:
        touch(211)
        os._exit(0)
    os.wait()
"""
"""A process with three children that fault."""


@pytest.fixture(scope="module")
def bpffs() -> Iterator[str]:
    """Two slots for Ann, one for Bob, as root pins them."""
    with users_sampling(), public_bpffs() as folder:
        for user, slots in ((ANN, 2), (BOB, 1)):
            command = [sys.executable, "-m", "purebpf", "setup", "pin", "--user", str(user)]
            where = ("--slots", str(slots), "--bpffs", folder)
            subprocess.run([*command, *where], check=True, cwd=ROOT, env=environment())
        yield folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where every user may write."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def line(user: int, bpffs: str, name: str, *arguments: str) -> list[str]:
    """A command as that user, without any capability, with `bpffs` at its usual place."""
    place = ("sh", "-ec", 'mount --bind "$0" /sys/fs/bpf; exec "$@"', bpffs)
    none = [f"--{which}=-all" for which in ("inh-caps", "ambient-caps", "bounding-set")]
    who = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *none)
    private = ("unshare", "--mount", "--propagation", "private")
    program = (sys.executable, "-m", "purebpf", name)
    return [*private, *place, *reachable(), *who, *program, *arguments]


def run(user: int, bpffs: str, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = line(user, bpffs, name, *arguments)
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment()
    )


def records(path: Path) -> list[object]:
    data = path.read_bytes()
    file = PerfData(lambda at, size: data[at : at + size], len(data), str(path))
    return [placed.record for placed in file.records()]


def family(user: int, bpffs: str, target: Path) -> subprocess.CompletedProcess[str]:
    """Record a process and its children with a filter that user space cannot evaluate."""
    return run(
        user, bpffs, "record", "-e", "page-faults:u", "-c", "1", "-d", "-o", str(target),
        "--filter", f"uid == {user}, addr & 0x1000", "--", sys.executable, "-c", FAMILY,
    )  # fmt: skip


@pytest.mark.parametrize("user", [ANN, BOB])
def test_a_process_and_its_children_are_filtered_in_the_kernel(
    bpffs: str, folder: Path, user: int
) -> None:
    done = family(user, bpffs, folder / "perf.data")
    assert done.returncode == 0, done.stderr
    assert "in user space, since" not in said(done)
    found = records(folder / "perf.data")
    samples = [each for each in found if isinstance(each, Sample)]
    assert all(each.addr & 0x1000 for each in samples)
    by_pid = [sum(each.pid == pid for each in samples) for pid in {each.pid for each in samples}]
    assert sum(count > 100 for count in by_pid) >= 3  # of 211 pages of each child a half
    (lost,) = [each for each in found if isinstance(each, LostSamples)]
    rejected = re.search(r"page-faults:u: (\d+) rejected by addr & 0x1000", done.stderr)
    assert rejected is not None
    assert lost.by_bpf
    assert lost.lost == int(rejected[1]) > 3 * 100


def test_more_filters_than_slots(bpffs: str, folder: Path) -> None:
    """What has no slot is filtered in user space, which is announced."""
    events = [
        part
        for event in ("page-faults:u", "minor-faults:u")
        for part in ("-e", event, "--filter", "addr & 0x1000")
    ]
    where = ("-c", "1", "-d", "-o", str(folder / "perf.data"))
    done = run(BOB, bpffs, "record", *events, *where, "--", sys.executable, "-c", FAMILY)
    assert done.returncode == 0, done.stderr
    assert "filter: minor-faults:u: in user space, since" in said(done)
    assert "all 1 in /sys/fs/bpf/purebpf/filter/4712 are in use" in said(done)
    assert "filter: page-faults:u: in user space" not in said(done)
    samples = [each for each in records(folder / "perf.data") if isinstance(each, Sample)]
    assert len(samples) > 300
    assert all(each.addr & 0x1000 for each in samples)


def test_who_has_no_slots(bpffs: str, folder: Path) -> None:
    target = folder / "perf.data"
    done = family(4713, bpffs, target)
    assert done.returncode == 1
    assert "samples do not have uid" in said(done)
    assert "-m purebpf setup pin --user 4713" in said(done)
    assert os.listdir(folder) == []


def test_a_recorder_that_is_killed_leaves_its_slot_to_the_next(bpffs: str, folder: Path) -> None:
    target = folder / "perf.data"
    filtered = ("-e", "cpu-clock:u", "--filter", "uid == 4712", "-o", str(target))
    command = line(BOB, bpffs, "record", *filtered, "--", "sh", "-c", "echo begun; sleep 300")
    first = subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, start_new_session=True
    )
    assert first.stdout is not None
    try:
        assert first.stdout.readline() == b"begun\n"
        assert " 0 of 1 free" in slots(bpffs)
        busy = family(BOB, bpffs, target)
        assert busy.returncode == 1
        assert "are in use; pin more" in said(busy)
        first.send_signal(signal.SIGKILL)
        first.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(first.pid, signal.SIGKILL)  # the command lives on
        first.wait()
        first.stdout.close()
    assert " 1 of 1 free" in slots(bpffs)
    assert family(BOB, bpffs, target).returncode == 0
    assert target.exists()


def slots(bpffs: str) -> str:
    """What Bob sees of his slots."""
    return run(BOB, bpffs, "setup", "status").stdout


def test_a_user_cannot_record_another_user_s_process(bpffs: str, folder: Path) -> None:
    with subprocess.Popen(["sleep", "60"], user=ANN) as theirs:
        done = run(
            BOB, bpffs, "record", "-p", str(theirs.pid), "--filter", "pid > 0",
            "-o", str(folder / "perf.data"), "1",
        )  # fmt: skip
        theirs.kill()
    assert done.returncode == 1
    assert "EACCES" in said(done)
    assert os.listdir(folder) == []
