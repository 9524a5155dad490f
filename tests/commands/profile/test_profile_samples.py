"""What the profiler counts is what the machine did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from purebpf.results import Profile
from purebpf.spec import ObjectSpec
from purebpf.symbols.frame import Unknown
from purebpf.tools.profile import ProfileOptions, Profiler, session
from purebpf.tools.profile.sampling import Sampling
from tests.commands.conftest import ROOT, Run, Workloads
from tests.support import probes

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")


def run(options: ProfileOptions, seconds: float, kind: type[Profiler] = Profiler) -> Profile:
    """Profile for a while, as a library user would."""
    with kind(options) as profiler:
        time.sleep(seconds)
        return profiler.stop()


def leaves(found: Profile, side: str = "user") -> Counter[str]:
    """The weight of each innermost function."""
    counted: Counter[str] = Counter()
    for row in found.rows():
        stack = getattr(row, side)
        if stack:
            entry = stack[0]
            counted["?" if isinstance(entry, Unknown) else entry.name] += row.weight
    return counted


def test_a_known_split_comes_out(workloads: Workloads) -> None:
    with workloads.running("split") as pid:
        found = run(ProfileOptions(pids=(pid,), frequency=3999), 2)
    counted = leaves(found)
    seventy, thirty = counted["spend_seventy"], counted["spend_thirty"]
    assert seventy + thirty > 2000
    assert 100 * seventy / (seventy + thirty) == pytest.approx(70, abs=3)


def test_a_name_that_is_written_down_later_is_found(workloads: Workloads) -> None:
    with workloads.running("generated") as pid:
        maps = Path(f"/proc/{pid}/maps").read_text()
        (start,) = (line.partition("-")[0] for line in maps.splitlines() if "rwxp" in line)
        names = Path(f"/tmp/perf-{pid}.map")
        # by frame pointers: in a slow guest the first samples by tables come later
        with Profiler(ProfileOptions(pids=(pid,), frequency=99, call_graph="fp")) as profiler:
            try:
                time.sleep(0.3)
                profiler.take()
                assert set(leaves(profiler.last())) == {"?"}
                names.write_text(f"{start} 4 spin_here\n")
                time.sleep(0.3)
                profiler.take()
                assert set(leaves(profiler.last())) == {"spin_here"}
                assert set(leaves(profiler.stop())) == {"spin_here"}
            finally:
                names.unlink(missing_ok=True)


def test_kernel_frames_of_system_calls_are_named(workloads: Workloads) -> None:
    with workloads.running("calls") as pid:
        found = run(ProfileOptions(pids=(pid,), frequency=999), 1)
    inside = [row for row in found.rows() if row.kernel]
    named = sum(
        row.weight
        for row in inside
        if {"vfs_read", "ksys_read"} & {getattr(entry, "name", "") for entry in row.kernel or ()}
    )
    assert named > 0.8 * sum(row.weight for row in inside) > 100
    assert not any(isinstance(entry, Unknown) for row in inside for entry in row.kernel or ())


def test_the_sampled_instruction_is_there_once(workloads: Workloads) -> None:
    with workloads.running("calls") as pid:
        found = run(ProfileOptions(pids=(pid,), frequency=999), 0.5)
    stacks = [row.kernel for row in found.rows() if row.kernel and len(row.kernel) > 1]
    assert stacks
    assert not any(stack[0].address == stack[1].address for stack in stacks)


def test_processes_that_are_gone_are_named(workloads: Workloads) -> None:
    with Profiler(ProfileOptions(frequency=999)) as profiler:
        for _ in range(10):
            subprocess.run([workloads.path("brief")], check=True)
        found = profiler.stop()
    brief = [row for row in found.rows() if row.labels.comm == "brief" and row.user]
    burning = {
        row.labels.pid
        for row in brief
        if "burn_briefly" in {getattr(entry, "name", "") for entry in row.user or ()}
    }
    assert len(burning) == 10
    nameless = sum(row.weight for row in brief if row.user and isinstance(row.user[0], Unknown))
    assert nameless <= 0.05 * sum(row.weight for row in brief)


@pytest.fixture
def same_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stack has the same hash: all of them want one slot."""

    class SameHash(Sampling):
        def _spec(self) -> ObjectSpec:
            return super()._spec().set(hash_mask=0)

    monkeypatch.setattr(session, "Sampling", SameHash)


@pytest.mark.usefixtures("same_hash")
def test_stacks_with_equal_hashes_stay_apart(workloads: Workloads) -> None:
    with workloads.running("still") as pid:
        options = ProfileOptions(pids=(pid,), frequency=999, kernel_stacks=False, call_graph="fp")
        found = run(options, 0.5)
    counted = leaves(found)
    assert {"stand_left", "stand_right"} <= counted.keys()
    assert min(counted["stand_left"], counted["stand_right"]) > 20
    assert found.about["stacks_displaced"] == 1
    assert counted.total() == found.total, "none was lost"
    sides = {row.user for row in found.rows()}
    assert len(sides) == 2


@pytest.mark.usefixtures("same_hash")
def test_stacks_that_crowd_each_other_out_are_counted(workloads: Workloads) -> None:
    with workloads.running("calls"), workloads.running("split"):
        found = run(ProfileOptions(frequency=999, call_graph="fp"), 1)
    lost = {cause.name: cause for cause in found.loss.causes}["stacks_lost"]
    missed = sum(row.weight * ((row.user is None) + (row.kernel is None)) for row in found.rows())
    assert lost.lost == missed > 0
    assert "too many others have the same hash" in lost.what
    kept = {row.user for row in found.rows() if row.user}
    assert 1 <= len(kept) <= 8 * len({row.labels.pid for row in found.rows()})
    assert found.total == found.about["counted"]


def test_user_and_kernel_stacks_are_kept_separately(workloads: Workloads) -> None:
    class Counting(Profiler):
        stored: list[int]

        def stop(self) -> Profile:
            self._sampling.events.disable()
            Counting.stored = [number >> 63 for number in self._sampling.loaded.maps["stacks"]]
            return super().stop()

    with workloads.running("calls") as pid:
        found = run(ProfileOptions(pids=(pid,), frequency=3999, call_graph="fp"), 1, Counting)
    rows = found.rows()
    user, kernel = (
        {row.user for row in rows if row.user},
        {row.kernel for row in rows if row.kernel},
    )
    assert Counting.stored.count(0) == len(user)
    assert Counting.stored.count(1) == len(kernel)
    assert len(rows) > max(len(user), len(kernel))


@pytest.mark.parametrize(
    ("options", "user", "kernel"),
    [
        (ProfileOptions(), True, True),
        (ProfileOptions(kernel_stacks=False), True, False),
        (ProfileOptions(user_stacks=False), False, True),
    ],
)
def test_either_side_can_be_left_out(
    workloads: Workloads, options: ProfileOptions, user: bool, kernel: bool
) -> None:
    with workloads.running("calls") as pid:
        found = run(options._replace(pids=(pid,), frequency=999), 0.3)
    assert any(row.user for row in found.rows()) is user
    assert any(row.kernel for row in found.rows()) is kernel


def test_threads_can_be_picked(workloads: Workloads) -> None:
    with workloads.running("still") as pid:
        found = run(ProfileOptions(tids=(pid,), frequency=999, kernel_stacks=False), 0.4)
    assert leaves(found).keys() == {"stand_right"}
    assert {(row.labels.pid, row.labels.tid) for row in found.rows()} == {(pid, pid)}


def test_a_process_has_all_of_its_threads(workloads: Workloads) -> None:
    with workloads.running("still") as pid:
        found = run(ProfileOptions(pids=(pid,), frequency=999, kernel_stacks=False), 0.4)
    assert leaves(found).keys() == {"stand_left", "stand_right"}
    assert {row.labels[:3] for row in found.rows()} == {("still", pid, 0)}


def test_one_cpu_can_be_picked(workloads: Workloads) -> None:
    cpu = min(os.sched_getaffinity(0))
    with workloads.running("split") as pid:
        os.sched_setaffinity(pid, {cpu})
        found = run(ProfileOptions(cpus=(cpu,), pids=(pid,), frequency=499), 0.4)
    assert found.about["cpus"] == [cpu]
    assert found.total > 20


def test_a_period_counts_events(workloads: Workloads) -> None:
    with workloads.running("split") as pid:
        found = run(ProfileOptions(pids=(pid,), period=2_000_000), 0.4)
    assert found.about["period"] == 2_000_000
    assert found.total > 20


def test_idle_is_left_out_unless_asked_for(workloads: Workloads) -> None:
    cpu = min(os.sched_getaffinity(0))
    with workloads.running("split") as pid:
        os.sched_setaffinity(pid, {cpu})
        without = run(ProfileOptions(frequency=499), 0.3)
        with_idle = run(ProfileOptions(frequency=499, include_idle=True), 0.3)
    assert not any(row.labels.comm.startswith("swapper/") for row in without.rows())
    assert with_idle.about["idle"] == 0


def test_the_programs_run_only_while_it_is_open(workloads: Workloads) -> None:
    with Profiler(ProfileOptions()) as profiler:
        ids = {each.info.id for each in profiler._sampling.loaded.programs.values()}
        assert ids <= probes.kernel_objects()["program"]
        profiler.stop()
    deadline = time.monotonic() + 5
    while ids & probes.kernel_objects()["program"] and time.monotonic() < deadline:
        time.sleep(0.01)  # the kernel frees a program after a grace period
    assert not ids & probes.kernel_objects()["program"]


def test_a_context_that_is_left_early_closes_everything(workloads: Workloads) -> None:
    before = probes.descriptors()
    with pytest.raises(ZeroDivisionError), Profiler(ProfileOptions()):
        raise ZeroDivisionError
    assert probes.descriptors() == before


@pytest.mark.needs("unshare")
def test_inside_a_pid_namespace_its_numbers_count(workloads: Workloads) -> None:
    script = (
        f"{workloads.path('split')} >/dev/null & "
        f"{sys.executable} -m purebpf profile --format json -p $! -F 999 0.5; kill $!"
    )
    result = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    found = json.loads(result.stdout)
    assert {stack["pid"] < 10 for stack in found["stacks"]} == {True}
    assert {frame.get("name") for frame in found["frames"]} >= {"spend_seventy", "spend_thirty"}


@contextmanager
def own_cgroup(pid: int) -> Iterator[Path]:
    """A new cgroup v2 with one process in it."""
    root = next(Path(place) for place, kind in probes.mounts() if kind == "cgroup2")
    group = root / f"purebpf-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cgroup.procs").write_text(str(pid))
        yield group
    finally:
        (root / "cgroup.procs").write_text(str(pid))
        group.rmdir()


@pytest.mark.needs("cgroup2")
def test_a_cgroup_can_be_picked(workloads: Workloads) -> None:
    with workloads.running("split") as inside, workloads.running("calls") as outside:
        with own_cgroup(inside) as group:
            found = run(ProfileOptions(cgroup=str(group), frequency=999), 0.5)
        assert {row.labels.pid for row in found.rows()} == {inside}
        assert outside != inside
    assert found.about["filtered"] != 0


@pytest.fixture
def bpf_mount(tmp_path: Path) -> Iterator[Path]:
    """A bpf file system of our own."""
    subprocess.run(["mount", "-t", "bpf", "bpf", str(tmp_path)], check=True)
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def pinned(place: Path, value_size: int, key: int) -> None:
    """What bcc's --cgroupmap and --mntnsmap take: a pinned hash of u64 keys."""
    from purebpf import Map, MapSpec
    from purebpf.abi.bpf import bpf_map_type

    spec = MapSpec("picked", bpf_map_type.BPF_MAP_TYPE_HASH, 8, value_size, 16)
    with Map.create(spec) as made:
        made[key.to_bytes(8, sys.byteorder)] = bytes(value_size)
        made.pin(place)


@pytest.mark.needs("cgroup2")
def test_cgroups_in_a_pinned_map(workloads: Workloads, profile: Run, bpf_mount: Path) -> None:
    place = bpf_mount / "cgroups"
    with (
        workloads.running("split") as inside,
        workloads.running("calls"),
        own_cgroup(inside) as group,
    ):
        pinned(place, 8, group.stat().st_ino)
        result = profile("-f", "--cgroupmap", str(place), "-F", "999", "0.5")
    assert result.returncode == 0, result.stderr
    assert {line.split(";")[0] for line in result.stdout.splitlines()} == {"split"}, result.stderr


@pytest.mark.needs("vmlinux_btf", "unshare")
def test_mount_namespaces_in_a_pinned_map(
    workloads: Workloads, profile: Run, bpf_mount: Path
) -> None:
    command = ["unshare", "--mount", workloads.path("split")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as inside, workloads.running("calls"):
        try:
            assert inside.stdout is not None
            assert inside.stdout.readline() == b"ready\n"
            number = os.stat(f"/proc/{inside.pid}/ns/mnt").st_ino
            pinned(bpf_mount / "mounts", 4, number)
            result = profile("-f", "--mntnsmap", str(bpf_mount / "mounts"), "-F", "999", "0.5")
        finally:
            inside.kill()
    assert result.returncode == 0, result.stderr
    assert {line.split(";")[0] for line in result.stdout.splitlines()} == {"split"}


def test_a_pinned_map_of_another_shape_is_refused(profile: Run, bpf_mount: Path) -> None:
    pinned(bpf_mount / "odd", 3, 0)
    result = profile("--cgroupmap", str(bpf_mount / "odd"), "1")
    assert result.returncode == 1
    assert "it has value_size 3, not 8" in " ".join(result.stderr.split())


def frames(found: Profile) -> list[Any]:
    return [entry for row in found.rows() for entry in (*(row.user or ()), *(row.kernel or ()))]


def test_stacks_are_leaf_first_and_end_at_the_root(workloads: Workloads) -> None:
    with workloads.running("split") as pid:
        options = ProfileOptions(pids=(pid,), frequency=999, kernel_stacks=False, call_graph="fp")
        found = run(options, 0.4)
    heaviest = found.rows()[-1].user
    assert heaviest
    names = [getattr(entry, "name", "?") for entry in heaviest]
    assert names[0] in ("spend_seventy", "spend_thirty")
    assert names[1] == "main"
    assert all(entry.kind == "user" for entry in frames(found))


@pytest.mark.any_kernel  # a guest under emulation is too slow to empty so small a table in time
def test_samples_know_when_they_were_taken(tmp_path: Path, profile: Run) -> None:
    """A table of counts that is full several times during the run loses none of them."""
    written = tmp_path / "a.json"
    work = "dd if=/dev/zero of=/dev/null bs=64k count=9000 2> /dev/null; "
    work += "head -c 60000000 /dev/zero | md5sum > /dev/null"
    ended = profile(
        *("-F", "1999", "--hash-storage-size", "700", "-o", str(written)),
        *("--", "sh", "-c", work),
    )
    assert "map_full=0 " in ended.stderr
    counted = json.loads(written.read_text())
    slots_by_comm: dict[str, set[int]] = {}
    for stack in counted["stacks"]:
        assert sum(weight for _, weight in stack["slots"]) == stack["weight"]
        slots_by_comm.setdefault(stack["comm"], set()).update(slot for slot, _ in stack["slots"])
    assert counted["slot_ns"] == 20_000_000
    assert max(slots_by_comm["dd"]) <= min(slots_by_comm["md5sum"])
    assert len(slots_by_comm["dd"] | slots_by_comm["md5sum"]) > 5
