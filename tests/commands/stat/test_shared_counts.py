"""stat --shared: one set of counters for several sessions, and what their ends leave behind."""

from __future__ import annotations

import mmap
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from purebpf import Map, Program
from purebpf.abi.bpf import bpf_map_type
from purebpf.errors import KernelError, NotSupportedError
from purebpf.spec import MapSpec
from purebpf.tools.stat import Counter, Result, StatOptions
from tests.support.environment import ROOT, run
from tests.support.host.users import public_bpffs

pytestmark = pytest.mark.needs("bpf", "bpffs", "perf_event")

CLOCK = (("cpu-clock",),)
GROUP = (("cpu-clock", "page-faults", "context-switches"),)
PROGRAM = "add_counts"
SPIN = "import time, sys\nprint(flush=True)\nwhile True: pass"


@pytest.fixture
def bpffs() -> Iterator[str]:
    with public_bpffs() as folder:
        yield folder


@pytest.fixture
def spinning() -> Iterator[subprocess.Popen[bytes]]:
    """A process that computes."""
    words = (sys.executable, "-S", "-E", "-c", SPIN)
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def values(result: Result) -> dict[str, float]:
    return {count.event.name: count.value or 0 for count in result.counts}


def sets_of_counters() -> int:
    """Programs of this kind that are loaded."""
    count = 0
    for program in Program.all():
        with program:
            count += program.info.name == PROGRAM
    return count


def await_sets_of_counters(wanted: int) -> None:
    """The kernel frees a program some time after its last user."""
    give_up = time.monotonic() + 10
    while sets_of_counters() != wanted and time.monotonic() < give_up:
        time.sleep(0.02)
    assert sets_of_counters() == wanted


def test_sessions_share_one_set_of_counters(bpffs: str) -> None:
    before = sets_of_counters()
    options = StatOptions(groups=CLOCK, shared=True, bpffs=bpffs)
    with Counter(options) as first, Counter(options) as second:
        assert sets_of_counters() == before + 1
        time.sleep(0.3)
        (early,) = second.stop().counts
        time.sleep(0.2)
        (whole,) = first.stop().counts
    await_sets_of_counters(before)
    online = os.sysconf("SC_NPROCESSORS_ONLN")
    assert early.value is not None
    assert whole.value is not None
    assert 0.3e9 * online <= early.value < whole.value
    assert early.enabled_ns == early.running_ns
    assert abs(early.enabled_ns - early.value) < 0.01 * early.value


def test_other_events_are_another_set(bpffs: str) -> None:
    before = sets_of_counters()
    with (
        Counter(StatOptions(groups=CLOCK, shared=True, bpffs=bpffs)),
        Counter(StatOptions(groups=GROUP, shared=True, bpffs=bpffs)) as group,
        Counter(StatOptions(groups=GROUP, shared=True, bpffs=bpffs, cpus=(0,))),
    ):
        assert sets_of_counters() == before + 2
        time.sleep(0.1)
        assert set(values(group.interval())) == set(GROUP[0])


def test_a_process_has_what_it_used(bpffs: str, spinning: subprocess.Popen[bytes]) -> None:
    """Its CPU time by the kernel's accounts, and none of what others used."""
    cpu_clock = ~spinning.pid << 3 | 2  # CPUCLOCK_SCHED of another process: clock_getcpuclockid(3)
    options = StatOptions(groups=CLOCK, pids=(spinning.pid,), shared=True, bpffs=bpffs)
    everything = StatOptions(groups=CLOCK, shared=True, bpffs=bpffs)
    with Counter(everything) as others, Counter(options) as counter:
        began_ns = time.clock_gettime_ns(cpu_clock)
        time.sleep(1)
        counted = values(counter.stop())["cpu-clock"]
        used_ns = time.clock_gettime_ns(cpu_clock) - began_ns
        in_all = values(others.stop())["cpu-clock"]
    assert abs(counted - used_ns) < 0.05 * used_ns + 5e6
    assert counted < in_all


def test_page_faults_of_a_process_are_exact(bpffs: str) -> None:
    """Of this one, which touches so many pages: in a group, and beside a session of its own."""
    options = StatOptions(groups=GROUP, pids=(os.getpid(),), shared=True, bpffs=bpffs)
    alone = StatOptions(groups=(("page-faults",),), pids=(os.getpid(),))
    with Counter(options) as shared, Counter(alone) as own:
        shared.interval()
        own.interval()
        before = resource.getrusage(resource.RUSAGE_SELF)
        with mmap.mmap(-1, 1009 * mmap.PAGESIZE) as memory:
            memory.madvise(mmap.MADV_NOHUGEPAGE)
            memory[:: mmap.PAGESIZE] = bytes(1009)
        after = resource.getrusage(resource.RUSAGE_SELF)
        together, single = values(shared.stop())["page-faults"], values(own.stop())["page-faults"]
    faults = after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt
    assert 1009 <= faults <= together
    assert abs(together - single) <= 0.1 * single + 20  # what is between the readings


def test_a_session_that_is_killed_leaves_its_counters_to_others(
    bpffs: str, spinning: subprocess.Popen[bytes]
) -> None:
    before = sets_of_counters()
    words = ("--shared", "--bpffs", bpffs, "-e", "cpu-clock", "-i", "0.1")
    command = (sys.executable, "-m", "purebpf", "stat", *words)
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as leader:
        assert leader.stdout is not None
        leader.stdout.readline()
        options = StatOptions(groups=CLOCK, pids=(spinning.pid,), shared=True, bpffs=bpffs)
        with Counter(options) as follower:
            leader.send_signal(signal.SIGKILL)
            leader.wait()
            assert sets_of_counters() == before + 1
            time.sleep(0.3)
            assert values(follower.stop())["cpu-clock"] > 0
    await_sets_of_counters(before)
    with Counter(StatOptions(groups=CLOCK, shared=True, bpffs=bpffs)) as anew:
        time.sleep(0.05)
        assert values(anew.stop())["cpu-clock"] > 0


def test_a_list_of_another_shape_is_refused(bpffs: str) -> None:
    with Counter(StatOptions(groups=CLOCK, shared=True, bpffs=bpffs)):
        pass
    path = f"{bpffs}/purebpf/counts/sets"
    os.unlink(path)
    with Map.create(MapSpec("sets", bpf_map_type.BPF_MAP_TYPE_HASH, 32, 24, 64)) as other:
        other.pin(path)
    with (
        pytest.raises(KernelError, match="value_size 24, not 16"),
        Counter(StatOptions(groups=CLOCK, shared=True, bpffs=bpffs)),
    ):
        pass


def test_a_folder_of_another_user_is_refused(bpffs: str) -> None:
    os.mkdir(f"{bpffs}/purebpf")
    os.chown(f"{bpffs}/purebpf", 4711, 4711)
    with (
        pytest.raises(NotSupportedError, match="4711"),
        Counter(StatOptions(groups=CLOCK, shared=True, bpffs=bpffs)),
    ):
        pass


def test_another_link_under_the_same_number_is_not_joined(bpffs: str) -> None:
    """The list says which program it was; another one gets a set of its own."""
    options = StatOptions(groups=CLOCK, shared=True, bpffs=bpffs)
    with Counter(options), Map.open(f"{bpffs}/purebpf/counts/sets") as sets:
        ((identity, entry),) = sets.items()
        sets[identity] = entry[:8] + bytes(8)  # another tag
        before = sets_of_counters()
        with Counter(options) as counter:
            assert sets_of_counters() == before + 1
            time.sleep(0.05)
            assert values(counter.stop())["cpu-clock"] > 0


def test_the_command_counts_all_tasks_while_another_runs(bpffs: str) -> None:
    words = ("--shared", "--bpffs", bpffs, "-e", "{cpu-clock,page-faults}", "--format", "csv")
    result = run("stat", *words, "-A", "-a", "--", "sleep", "0.2")
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == 1 + 2 * os.sysconf("SC_NPROCESSORS_ONLN")


@pytest.mark.parametrize(
    "words",
    [("--tree", "-p", "1"), ("-G", "/"), ("-b", "1"), ("-A", "-p", "1"), ("--", "true")],
    ids=" ".join,
)
def test_what_shared_counters_cannot_do_is_a_wrong_option(words: tuple[str, ...]) -> None:
    result = run("stat", "--shared", *words)
    assert result.returncode == 2
    assert "--shared" in result.stderr.splitlines()[-1]


def test_no_file_system_says_what_to_mount(tmp_path: object) -> None:
    result = run("stat", "--shared", "--bpffs", str(tmp_path), "0.1")
    assert result.returncode == 1
    assert "is not a bpf file system" in " ".join(result.stderr.split())
