"""kwork against what the kernel counts itself, and workloads of a known size."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

import purebpf
from purebpf import PerfEvent
from purebpf.errors import NotSupportedError
from purebpf.measure.targets import NoSuchTargetError
from purebpf.results.shape.histogram import bucket_bounds
from purebpf.tools.kwork import Kwork, KworkOptions, KworkRow
from tests.support.environment import ROOT, run

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")

ALARMS, READS, MAPS = 53, 101, 7


def softirqs() -> dict[str, int]:
    _, *lines = Path("/proc/softirqs").read_text().splitlines()
    words = [line.split() for line in lines]
    return {name.rstrip(":").lower(): sum(map(int, counts)) for name, *counts in words}


def interrupts() -> dict[int, int]:
    head, *lines = Path("/proc/interrupts").read_text().splitlines()
    columns = len(head.split())
    words = [line.split() for line in lines]
    return {
        int(name.rstrip(":")): sum(map(int, rest[:columns]))
        for name, *rest in words
        if name.rstrip(":").isdigit()
    }


def test_softirqs_and_interrupts_are_those_of_proc(tmp_path):
    """What is read before and after the programs are there bounds what they count."""
    outer = softirqs(), interrupts()
    with Kwork(KworkOptions(kinds=("irq", "softirq"))) as kwork:
        inner = softirqs(), interrupts()
        for turn in range(7):
            with (tmp_path / f"{turn}").open("wb") as file:
                file.write(bytes(65536))
                os.fsync(file.fileno())
            time.sleep(0.01)
        inner_end = softirqs(), interrupts()
        result = kwork.stop()
    outer_end = softirqs(), interrupts()
    assert not result.loss.any
    counted = {row.name: row.runs for row in result.rows if row.kind == "softirq"}
    assert counted
    for name in outer[0]:
        least = inner_end[0][name] - inner[0][name]
        # one may run across each moment: counted by the kernel at its start, here at its end
        assert least - 2 <= counted.get(name, 0) <= outer_end[0][name] - outer[0][name] + 2, name
    for row in result.rows:
        if row.kind == "irq":
            number = row.id
            least = inner_end[1][number] - inner[1][number]
            assert least <= row.runs <= outer_end[1][number] - outer[1][number] + 1, row.name


def test_times_are_those_of_the_histograms():
    with Kwork(KworkOptions(by_cpu=True)) as kwork:
        time.sleep(0.3)
        result = kwork.stop()
    assert {row.kind for row in result.rows} >= {"softirq", "hrtimer"}
    for row in result.rows:
        check_sums(row.buckets, row.runs, row.total_ns, row.max_ns)
        check_sums(row.delay_buckets, row.delayed, row.delay_ns, row.max_delay_ns)
        assert 0 < row.max_end_ns <= time.monotonic_ns()
        assert row.delayed <= row.runs


def check_sums(buckets: tuple[int, ...], count: int, total_ns: int, longest_ns: int) -> None:
    assert sum(buckets) == count
    bounds = [(*bucket_bounds(number), count) for number, count in enumerate(buckets) if count]
    assert sum(low * count for low, _, count in bounds) <= total_ns
    assert total_ns <= sum(high * count for _, high, count in bounds)
    if bounds:
        assert bounds[-1][0] <= longest_ns < bounds[-1][1]


def alarms() -> None:
    """So many expirations of a timer of the process, one after the other."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    for _ in range(ALARMS):
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        signal.sigwait({signal.SIGALRM})


def test_every_expiration_of_a_timer_counts_with_its_delay():
    with Kwork(KworkOptions(kinds=("hrtimer",), names=("it_real_fn",))) as kwork:
        pid = os.fork()
        if not pid:
            alarms()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        result = kwork.stop()
    (row,) = result.rows
    assert (row.name, row.runs, row.delayed) == ("it_real_fn", ALARMS, ALARMS)


def row_of(rows: tuple[KworkRow, ...], name: str) -> KworkRow:
    (found,) = [row for row in rows if row.name == name]
    return found


def test_calls_of_another_cpu_are_counted_where_they_run():
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("a CPU can only call another one")
    options = KworkOptions(kinds=("ipi",), cpus=(cpus[1],), by_cpu=True)
    with PerfEvent.software("cpu-clock", cpu=cpus[1]) as event:
        try:
            os.sched_setaffinity(0, {cpus[0]})
            with Kwork(options) as kwork:
                for _ in range(READS):
                    event.read()
                rows = kwork.stop().rows
        except NotSupportedError as error:
            pytest.skip(str(error))
        finally:
            os.sched_setaffinity(0, cpus)
    calls = row_of(rows, "__perf_event_read")
    assert calls.runs >= READS  # other programs may read counters, too
    assert calls.delayed == calls.runs
    assert {row.cpu for row in rows} == {cpus[1]}


def test_a_call_that_wakes_a_task_has_its_function():
    """The kernel's struct for it has no function: what is there was shown as 0x5."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("a CPU can only call another one")
    there, back = os.pipe(), os.pipe()
    if not (pid := os.fork()):
        os.sched_setaffinity(0, {cpus[1]})
        for _ in range(READS):
            os.read(there[0], 1)
            os.write(back[1], b"!")
        os._exit(0)
    try:
        os.sched_setaffinity(0, {cpus[0]})
        with Kwork(KworkOptions(kinds=("ipi",))) as kwork:
            for _ in range(READS):
                os.write(there[1], b"!")
                os.read(back[0], 1)
                time.sleep(0.001)  # an idle CPU is asked to wake the task itself
            rows = kwork.stop().rows
    except NotSupportedError as error:
        os.kill(pid, signal.SIGKILL)
        pytest.skip(str(error))
    finally:
        os.sched_setaffinity(0, cpus)
        os.waitpid(pid, 0)
        for fd in (*there, *back):
            os.close(fd)
    assert not [row.name for row in rows if row.name.startswith("0x")]


def test_work_has_its_delay_and_who_queued_it():
    with Kwork(KworkOptions(kinds=("work",), stacks=True)) as kwork:
        for _ in range(MAPS):  # the kernel frees a map in a work of its own
            with purebpf.load(ROOT / "tests/data/load_counter.bpf.o"):
                pass
        time.sleep(0.3)
        result = kwork.stop()
    frees = [row for row in result.rows if row.name == "bpf_map_free_deferred"]
    assert sum(row.runs for row in frees) >= MAPS  # other programs may free maps, too
    assert sum(row.delayed for row in result.rows) > 0
    queued = [row.stack for row in result.rows if row.delayed]
    assert all(queued), "every stack was walked"
    assert any("queue_work_on" in stack or "__queue_work" in stack for stack in queued)


def test_intervals_add_up_and_json_has_the_loss():
    done = run("kwork", "-k", "softirq", "-i", "0.1", "--format", "json", "0.35")
    assert done.returncode == 0, done.stderr
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(documents) >= 2  # three, where the machine keeps up
    assert all("rows_full" in document["loss"] for document in documents)
    times = [document["time_s"] for document in documents]
    assert times == sorted(times)
    assert "lost: nothing" in done.stderr


def test_a_full_table_is_loss():
    done = run("kwork", "--map-entries", "1", "--strict", "0.5")
    assert done.returncode == 3, done.stdout
    assert "no row was left. Raise --map-entries" in " ".join(done.stderr.split())


def test_a_cpu_that_is_offline_is_reported():
    with pytest.raises(NoSuchTargetError, match="CPU 4095 is offline"):
        Kwork(KworkOptions(cpus=(4095,))).__enter__()


def test_a_kernel_without_btf_is_said_so():
    hidden = 'mount -t tmpfs none /sys/kernel/btf && exec "$@"'
    done = run("kwork", "0.1", prefix=("unshare", "-m", "sh", "-c", hidden, "sh"))
    assert done.returncode == 1
    assert "without CONFIG_DEBUG_INFO_BTF" in " ".join(done.stderr.split())


def test_each_run_is_shown_once_and_adds_up_to_the_rows() -> None:
    with Kwork(KworkOptions(kinds=("irq", "softirq", "work", "timer"), each_run=True)) as kwork:
        time.sleep(0.3)
        shown = list(kwork.runs())
        time.sleep(0.2)
        result = kwork.stop()
    shown += kwork.last_runs
    lost = {cause.name: cause.lost for cause in result.loss.causes}
    assert not lost["runs_full"]
    counted = Counter((each.kind, each.name) for each in shown)
    took = Counter[tuple[str, str]]()
    for each in shown:
        took[each.kind, each.name] += each.ended_ns - each.began_ns
        assert each.ended_ns >= each.began_ns
    rows = {(row.kind, row.name): row for row in result.rows}
    assert counted == {key: row.runs for key, row in rows.items()}
    assert took == {key: row.total_ns for key, row in rows.items()}
    assert any(each.wait_ns for each in shown)


def test_the_lines_of_runs_are_in_the_order_of_their_ends() -> None:
    shown = run("kwork", "--timehist", "--format", "json", "-k", "softirq,timer", "1")
    assert shown.returncode == 0, shown.stderr
    ends = [json.loads(line)["ended_ns"] for line in shown.stdout.splitlines()]
    assert len(ends) > 5
    assert all(later - sooner > -1_000_000 for sooner, later in pairwise(ends))


def test_packets_to_this_machine_are_received_in_the_time_of_their_sender():
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        Kwork(KworkOptions(kinds=("softirq",), names=("net_rx",))) as kwork,
    ):
        receiver.bind(("127.0.0.1", 0))
        for number in range(3001):
            sender.sendto(b"x", receiver.getsockname())
            if not number % 100:
                time.sleep(0.001)  # ksoftirqd takes over where there are many
        result = kwork.stop()
    (row,) = result.rows
    mine = next(host for host in result.hosts if host.pid == os.getpid())
    assert mine.softirq == "net_rx"
    assert 0 < mine.total_ns <= row.total_ns
    assert sum(host.total_ns for host in result.hosts) <= row.total_ns
