"""What the agent costs: CPU time of its own and of its BPF programs, memory, bytes a window.

    sudo .venv/bin/python bench/agent.py [--minutes 10] [--churn 10000] [--long-living]
        [--wait | --trace]

Runs `purebpf agent` with windows of a minute into a directory, beside whatever this machine does,
and beside --churn short processes a minute, or programs that live long (bench/long_living.py).
Prints a line for each window, from the facts that it carries and from /proc, and the bars: under
0.5 % of one CPU, memory flat within 5 MB in the second half and under 120 MB. CPU time counts, not
wall time: a busy machine changes what there is to sample, not what a second of CPU is. Exit status
1 when a bar is missed. Needs root.
"""

from __future__ import annotations

import argparse
import gzip
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from long_living import start_long_living

from purebpf.results.formats.otlp_reader import read_document

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_MOST_SHARE, _MOST_RSS_KIB, _FLAT_KIB = 0.005, 120_000, 5_000
_CHURN = """
import subprocess, sys, time
pause = 60 / float(sys.argv[1])
due = time.monotonic()
while True:
    subprocess.run(["/bin/true"])
    due = max(due + pause, time.monotonic() - 5)
    time.sleep(max(0, due - time.monotonic()))
"""


class Look(NamedTuple):
    """The agent at a time: CPU seconds so far, KiB resident, descriptors."""

    cpu_s: float
    rss_kib: int
    descriptors: int


def look(pid: int) -> Look:
    """How it is now."""
    proc = Path(f"/proc/{pid}")
    words = (proc / "stat").read_text().rpartition(")")[2].split()
    rss = int((proc / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 10
    return Look((int(words[11]) + int(words[12])) * _TICK_S, rss, len(os.listdir(proc / "fd")))


def facts(path: Path) -> tuple[dict[str, int | str], int, int]:
    """A window's own facts, its services and its samples."""
    profiles = read_document(gzip.decompress(path.read_bytes()))
    samples = sum(sum(profile.series.samples.values()) for profile in profiles)
    named = {name.removeprefix("purebpf."): value for name, value in profiles[0].window.facts}
    return named, len(profiles), samples


def run(options: argparse.Namespace, folder: Path, pid: int) -> bool:
    """Print each window as it comes; whether the bars hold."""
    known: set[Path] = set()
    looks = [look(pid)]
    exact, bpf_ns, last_rss = True, 0, []
    print(f"{'window':>6} {'CPU ms':>7} {'BPF ms':>7} {'RSS KiB':>8} {'fds':>4} {'services':>8} "
          f"{'samples':>8} {'seen':>6} {'bytes':>7}")  # fmt: skip
    while len(looks) <= options.minutes:
        time.sleep(1)
        if not Path(f"/proc/{pid}/fd/0").exists():
            sys.exit("the agent has ended")
        fresh = sorted({*folder.rglob("*-cpu-*.otlp.gz")} - known)
        if not fresh:
            continue
        known.update(fresh)
        window, services, samples = facts(fresh[-1])
        looks.append(look(pid))
        cpu_s = looks[-1].cpu_s - looks[-2].cpu_s
        bpf_ns += int(window["bpf_run_ns"])
        exact &= samples == window["counted"]
        last_rss.append(looks[-1].rss_kib)
        print(f"{len(looks) - 1:6} {1000 * cpu_s:7.0f} {int(window['bpf_run_ns']) / 1e6:7.2f} "
              f"{looks[-1].rss_kib:8} {looks[-1].descriptors:4} {services:8} {samples:8} "
              f"{window['seen']:>6} {fresh[-1].stat().st_size:7}", flush=True)  # fmt: skip
    minutes = len(looks) - 2  # the first window is short, and holds the start
    cpu_s = looks[-1].cpu_s - looks[1].cpu_s
    share = (cpu_s + bpf_ns / 1e9) / (60 * max(1, minutes))
    grown = max(last_rss) - last_rss[len(last_rss) // 2]
    print(f"after the first window: {100 * share:.3f} % of one CPU (bar 0.5)")
    print(f"second half: {grown:+} KiB (bar 5000); most {max(last_rss)} KiB (bar 120000)")
    print(f"samples equal to what was counted: {exact}")
    return share < _MOST_SHARE and grown < _FLAT_KIB and max(last_rss) < _MOST_RSS_KIB and exact


def main() -> int:
    """Run the agent for a while."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=int, default=10, help="windows (default: 10)")
    parser.add_argument("--churn", type=int, default=0, help="short processes a minute")
    parser.add_argument("--long-living", action="store_true", help="beside long-living programs")
    parser.add_argument("--wait", action="store_true", help="look where threads wait, too")
    parser.add_argument("--trace", action="store_true", help="trace their waits, too")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what runs beside it
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory())
        folder = Path(name)
        if options.long_living:
            print("beside", *start_long_living(stack, folder))
        path = folder / "agent.toml"
        wait = "true" if options.wait or options.trace else "false"
        method = "trace" if options.trace else "sample"
        path.write_text(
            f"[agent]\nstate = '{name}/state'\njitter_s = 0\nbudget = 0.0\n[wait]\n"
            f"enabled = {wait}\nmethod = '{method}'\n[[sink]]\ntype = 'dir'\npath = '{name}/out'\n"
        )
        words = [sys.executable, "-m", "purebpf", "agent", "--config", str(path)]
        churn = [sys.executable, "-c", _CHURN, str(options.churn or 1)]
        with subprocess.Popen(words) as agent, subprocess.Popen(churn) as workload:
            try:
                is_good = run(options, folder / "out", agent.pid)
            finally:
                workload.kill()
                agent.send_signal(signal.SIGTERM)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
