"""What whole runs of commands cost, from start to printed result, beside what else could be run.

    python bench/whole_runs.py [--rounds 7] [--only true,service,machine]

*True*: a profile of a command that does nothing. *Service*: the stacks and a profile of a Python
service of four threads. *Machine*: three seconds of the whole machine with ten busy programs, and
the time from Ctrl-C to the result. The tools take turns, and medians are compared. Figures are CPU
seconds of the tool with all that it started, except where they say otherwise. Needs root; a peer
that is not installed is left out, and said so.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import results
from peers import ATTACHED_S, here
from python import PEER as SPY
from python import py_spy
from results import Figure

OURS = [sys.executable, "-m", "purebpf"]
SCRIPT = "profile:hz:49 { @[kstack, ustack, comm] = count(); }"
SERVICE = Path(__file__).parent / "workloads" / "service.py"
LOOPS = (
    "xz -1 -c /bin/sh",
    "gzip -c /bin/sh",
    "bzip2 -c /bin/sh",
    "sort -R /etc/services",
    "sha256sum /bin/sh",
    "ls -lR /etc",
    "python3 -c pass",
)
BUSY = [
    ["awk", "BEGIN { while (1) x = x + sin(x) }"],
    ["perl", "-e", "1 while 1"],
    [sys.executable, "-c", "import json\nwhile True: json.dumps(list(range(500)))"],
    *(["sh", "-c", f"while :; do {line} >/dev/null; done"] for line in LOOPS),
]
_SECONDS = 3
_ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}
"""An installed purebpf has bytecode files; without them a start takes twice as long."""
_MIB = 1 << 10
"""In the units of ru_maxrss."""


class Cost(NamedTuple):
    """Of one run: CPU seconds, seconds, and the most memory in MiB."""

    cpu_s: float
    wall_s: float
    memory: float


def cost(*commands: list[str], stop_s: float = 0.0) -> Cost:
    """Run commands one after the other. With `stop_s`, press Ctrl-C that much later: count from
    then.
    """
    cpu_s = wall_s = memory = 0.0
    for command in commands:
        nowhere = subprocess.DEVNULL
        began = time.monotonic()
        child = subprocess.Popen(command, stdout=nowhere, stderr=nowhere, env=_ENVIRONMENT)
        if stop_s:
            time.sleep(stop_s)
            began = time.monotonic()
            child.send_signal(signal.SIGINT)
        _, _, used = os.wait4(child.pid, 0)
        child.returncode = 0
        wall_s += time.monotonic() - began
        cpu_s += used.ru_utime + used.ru_stime
        memory = max(memory, used.ru_maxrss / _MIB)
    return Cost(cpu_s, wall_s, memory)


def in_turn(rounds: int, tools: dict[str, Callable[[], Cost]]) -> dict[str, Cost]:
    """The medians of each tool."""
    for run in tools.values():
        run()  # writes bytecode and caches
    taken: dict[str, list[Cost]] = {name: [] for name in tools}
    for _ in range(rounds):
        for name, run in tools.items():
            taken[name].append(run())
    return {
        name: Cost(*map(statistics.median, zip(*costs, strict=True)))
        for name, costs in taken.items()
    }


def true(rounds: int) -> Iterator[Figure]:
    """A profile of a command that does nothing."""
    tools = {"": lambda: cost([*OURS, "profile", "--", "true"])}
    if here("bpftrace"):
        tools["bpftrace"] = lambda: cost(["bpftrace", "-c", "true", "-e", SCRIPT])
    median = in_turn(rounds, tools)
    ours, theirs = median[""], median.get("bpftrace")
    what, peer = "profile -- true", "bpftrace" if theirs else ""
    yield Figure(f"{what}: CPU", ours.cpu_s, "s", peer, theirs and theirs.cpu_s)
    yield Figure(f"{what}: time", ours.wall_s, "s", peer, theirs and theirs.wall_s, 0.5)
    yield Figure(f"{what}: CPU", ours.cpu_s, "s", limit=0.12)
    yield Figure(f"{what}: memory", ours.memory, "MiB", limit=25)


def service(rounds: int) -> Iterator[Figure]:
    """The stacks of a Python service, and a profile of 4 s."""
    with py_spy() as spy, running([[sys.executable, str(SERVICE)]]) as pids:
        pid = str(pids[0])
        record = ["record", "-p", pid, "-r", "99", "-d", "4", "-f", "raw", "-o", os.devnull]
        profile = ["profile", "-p", pid, "-F", "99", "-f", "4"]
        pairs = {
            "dump of a Python service": (["dump", pid], ["dump", "-p", pid], 0.06),
            "profile of a Python service for 4 s": (profile, record, 0.14),
        }
        for what, (ours, theirs, limit) in pairs.items():
            tools = {"": lambda words=ours: cost([*OURS, *words])}
            if spy:
                tools[SPY] = lambda words=theirs: cost([spy, *words])
            median = in_turn(rounds, tools)
            peer_s = median[SPY].cpu_s if spy else None
            yield Figure(f"{what}: CPU", median[""].cpu_s, "s", SPY if spy else "", peer_s)
            yield Figure(f"{what}: CPU", median[""].cpu_s, "s", limit=limit)


def whole_machine(rounds: int) -> Iterator[Figure]:
    """The whole machine with ten busy programs."""
    with tempfile.TemporaryDirectory() as folder, running(BUSY):
        data, perf = f"{folder}/perf.data", "perf record -g, perf script"
        record = ["perf", "record", "-q", "-F", "99", "-a", "-g", "-o", data]
        script = ["perf", "script", "-i", data]
        ours = [*OURS, "profile", "-F", "99", "-f"]
        for_a_while = {"": lambda: cost([*ours, str(_SECONDS)])}
        stopped = {"": lambda: cost(ours, stop_s=ATTACHED_S + _SECONDS)}
        if here("perf"):
            for_a_while[perf] = lambda: cost([*record, "--", "sleep", str(_SECONDS)], script)
            stopped[perf] = lambda: perf_stopped(record, script)
        for what, tools in {f"{_SECONDS} s of the machine": for_a_while, "": stopped}.items():
            median = in_turn(rounds, tools)
            mine, theirs = median[""], median.get(perf)
            peer = perf if theirs else ""
            if what:
                yield Figure(f"{what}: CPU", mine.cpu_s, "s", peer, theirs and theirs.cpu_s, 1.0)
            else:
                given = (mine.wall_s, "s", peer, theirs and theirs.wall_s, 1.0)
                yield Figure("Ctrl-C to result, ten busy programs: time", *given)


def perf_stopped(record: list[str], script: list[str]) -> Cost:
    """The end of a recording, and its text."""
    ended, printed = cost(record, stop_s=ATTACHED_S + _SECONDS), cost(script)
    return Cost(ended.cpu_s + printed.cpu_s, ended.wall_s + printed.wall_s, printed.memory)


@contextmanager
def running(commands: Sequence[list[str]]) -> Iterator[list[int]]:
    """Run programs in groups of their own, and kill them with their children."""
    with ExitStack() as stack:
        pids = []
        for command in commands:
            silence = subprocess.DEVNULL
            child = subprocess.Popen(command, stdout=silence, stderr=silence, process_group=0)
            stack.callback(child.wait)
            stack.callback(os.killpg, child.pid, signal.SIGKILL)
            pids.append(child.pid)
        time.sleep(1)
        yield pids


PARTS = {"true": true, "service": service, "machine": whole_machine}


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """All parts that are asked for."""
    for name in options.only.split(","):
        yield from PARTS[name](options.rounds)


if __name__ == "__main__":
    command_line = results.parser(__doc__, rounds=7)
    command_line.add_argument("--only", default=",".join(PARTS), metavar="PART,...")
    sys.exit(results.run(measure, command_line.parse_args()))
