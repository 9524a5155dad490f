"""Measure purebpf against what a user would run instead, side by side in one run.

    python bench/profiler.py [--rounds 7] [--only start,cost,report,btf]

Runs are interleaved and medians compared, since the machines that run this are noisy. Python may
write and read its bytecode files, as it does for every user, and one run that writes them comes
first. Needs root, bpftrace, strace and gcc; what a bench needs and is not there is named, and the
bench left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import results
from peers import here, workload
from results import Figure

ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
}
PROFILE = [sys.executable, "-m", "purebpf", "profile"]
PEER = "bpftrace"
SCRIPT = "profile:hz:99 { @[kstack, ustack, comm] = count(); }"

_STARTED_S = 1.5
"""Seconds after which both sides are attached, on a busy machine too."""
_WATCHED_S = 10


def attach_ms(command: list[str]) -> float:
    """Milliseconds from exec to the last call that opens an event or links a program to one.

    strace stops both sides alike, and only there (--seccomp-bpf). ioctl is not among the calls, as
    the interpreter makes one for every module it opens; so bpftrace, which attaches by ioctl right
    after opening each event, is credited with the moment of opening.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        trace = ["strace", "-f", "-ttt", "--seccomp-bpf", "-o", str(log)]
        trace += ["-e", "trace=execve,bpf,perf_event_open"]
        with started([*trace, *command]) as process:
            process.wait()
        lines = log.read_text().splitlines()
    start = float(lines[0].split()[1])
    attach = re.compile(r"BPF_LINK_CREATE|perf_event_open\(")
    ends = [float(line.split()[1]) for line in lines if attach.search(line)]
    if not ends:
        raise SystemExit(f"{command[0]} attached nothing")
    return (ends[-1] - start) * 1000


def cold_attach_ms(command: list[str]) -> float:
    """`attach_ms` with nothing in the page cache, as on a host where it was not yet used."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")
    return attach_ms(command)


def started(command: list[str]) -> subprocess.Popen[bytes]:
    """`command`, running in silence."""
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT
    )


def running_percent(command: list[str]) -> float:
    """Percent of one CPU that `command` uses while it samples, its start and its report apart."""
    with started(command) as process:
        time.sleep(_STARTED_S)
        before = run_time_ns(process.pid)
        time.sleep(_WATCHED_S)
        used = run_time_ns(process.pid) - before
        process.send_signal(signal.SIGINT)
    return used / (_WATCHED_S * 1e9) * 100


def run_time_ns(pid: int) -> int:
    """CPU time of all threads of a process so far (/proc/PID/task/TID/schedstat)."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads)


def wall_ms(command: list[str]) -> float:
    """Milliseconds from start to end of `command`."""
    start = time.monotonic()
    with started(command) as process:
        process.wait()
    return (time.monotonic() - start) * 1000


def peak_mb(command: list[str]) -> float:
    """Peak resident memory of `command`, looked at every 5 ms.

    Not ru_maxrss, which begins with the memory of the process that forked the command: this script.
    """
    peak = 0
    with started(command) as process:
        while process.poll() is None:
            try:
                status = Path(f"/proc/{process.pid}/status").read_text()
            except (FileNotFoundError, ProcessLookupError):
                break
            if peak_match := re.search(r"VmHWM:\s+(\d+)", status):
                peak = max(peak, int(peak_match[1]))
            time.sleep(0.005)
    return peak / 1024


def bpftrace(seconds: int) -> list[str]:
    """The peer: the same profile by bpftrace."""
    return [PEER, "-e", f"{SCRIPT} interval:s:{seconds} {{ exit(); }}"]


def bench_start(rounds: int) -> list[Figure]:
    """Start to attached, --help, and peak memory, against bpftrace."""
    ours, peer, ours_mb, peer_mb, helped = [], [], [], [], []
    wall_ms([*PROFILE, "-F", "99", "0.1"])  # writes bytecode files
    for _ in range(rounds):
        ours.append(attach_ms([*PROFILE, "-F", "99", "1"]))
        peer.append(attach_ms(bpftrace(1)))
        ours_mb.append(peak_mb([*PROFILE, "-F", "99", "1"]))
        peer_mb.append(peak_mb(bpftrace(1)))
        helped.append(wall_ms([*PROFILE, "--help"]))
    cold, peer_cold = [], []
    for _ in range(rounds):
        cold.append(cold_attach_ms([*PROFILE, "-F", "99", "1"]))
        peer_cold.append(cold_attach_ms(bpftrace(1)))
    median = statistics.median
    what = "process start to attached"
    return [
        Figure("--help", median(helped), "ms", limit=100),
        Figure(f"{what}, first run", median(cold), "ms", PEER, median(peer_cold), 0.5),
        Figure(f"{what}, again", median(ours), "ms", PEER, median(peer), 0.5),
        Figure("peak memory, 1 s run", median(ours_mb), "MB", PEER, median(peer_mb), 0.5),
    ]


def bench_cost(rounds: int) -> list[Figure]:
    """CPU used by the tool and its program while they sample at 99 Hz."""
    ours, peer, program = [], [], []
    for _ in range(max(rounds // 2, 1)):
        ours.append(running_percent([*PROFILE, "-F", "99"]))
        peer.append(running_percent(bpftrace(60)))
        program.append(program_percent())
    median = statistics.median
    what = "CPU while running at 99 Hz"
    return [
        Figure(f"{what}, the tool", median(ours), "% of a CPU", PEER, median(peer)),
        Figure(f"{what}, tool and program", median(ours) + median(program), "% of a CPU", limit=1),
    ]


def program_percent() -> float:
    """CPU share of the BPF program itself, which takes its own time."""
    done = subprocess.run(
        [*PROFILE, "-F", "99", "--format", "json", "5"],
        capture_output=True,
        check=True,
        env=ENVIRONMENT,
    )
    cost = json.loads(done.stdout)["cost"]
    return float(cost["run_time_ns"]) / 5e9 * 100


def bench_report(rounds: int) -> list[Figure]:
    """From Ctrl-C to the end, with some 10,000 distinct stacks collected.

    The processes that make the stacks are stopped for it: what is measured is the tool, not how
    the scheduler shares the CPUs with a load that keeps all of them busy.
    """
    with tempfile.TemporaryDirectory() as folder:
        binary = workload("stacks", folder, "-O1", "-fno-omit-frame-pointer")
        busy = [subprocess.Popen([binary]) for _ in range(os.cpu_count() or 1)]
        try:
            took, stacks = zip(*(interrupted(busy) for _ in range(rounds)), strict=True)
        finally:
            for process in busy:
                process.kill()
                process.wait()
    return [
        Figure("distinct stacks in that report", statistics.median(stacks), "stacks"),
        Figure("Ctrl-C to printed", statistics.median(took), "ms", limit=1000),
    ]


def interrupted(busy: list[subprocess.Popen[bytes]]) -> tuple[float, int]:
    """Milliseconds from SIGINT to exit of a folded profile, and how many stacks it printed."""
    command = [*PROFILE, "-F", "9999", "-f", "--stack-storage-size", "65536"]
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        time.sleep(2.5)
        for child in busy:
            child.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        process.wait()
        took = (time.monotonic() - start) * 1000
        for child in busy:
            child.send_signal(signal.SIGCONT)
        out.seek(0)
        return took, len(out.read().splitlines())


def bench_btf(rounds: int) -> list[Figure]:
    """The index over the kernel's BTF, and a lookup by name."""
    from purebpf.btf.types.kinds import Kind
    from purebpf.btf.types.parse import Btf

    data = Path("/sys/kernel/btf/vmlinux").read_bytes()
    index, lookup = [], []
    names = ["task_struct", "file", "bpf_prog", "sk_buff", "mm_struct"]
    for _ in range(rounds):
        start = time.perf_counter()
        btf = Btf(data)
        index.append((time.perf_counter() - start) * 1000)
        btf.find("cgroup", Kind.STRUCT)
        start = time.perf_counter()
        for name in names:
            btf.find(name, Kind.STRUCT)
        lookup.append((time.perf_counter() - start) * 1000 / len(names))
    return [
        Figure("vmlinux BTF index", statistics.median(index), "ms", limit=80),
        Figure("BTF lookup by name", statistics.median(lookup), "ms", limit=1),
    ]


BENCHES: dict[str, tuple[Callable[[int], list[Figure]], tuple[str, ...]]] = {
    "btf": (bench_btf, ()),
    "start": (bench_start, ("bpftrace", "strace")),
    "cost": (bench_cost, ("bpftrace",)),
    "report": (bench_report, ("gcc",)),
}


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """The figures of the chosen benches that have their programs."""
    for name in options.only.split(","):
        bench, programs = BENCHES[name]
        if here(*programs):
            yield from bench(options.rounds)


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=7)
    options.add_argument("--only", default=",".join(BENCHES))
    sys.exit(results.run(measure, options.parse_args()))
