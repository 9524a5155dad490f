"""Python functions beside py-spy: how exact, what it costs the program, what it costs the machine.

    python bench/python.py [--rounds 4] [--seconds 60] [--only shares,slow,floor,many]

py-spy is installed from the package index into a throw-away environment, if it is not there.
*Shares*: both tools watch the same process for the same minute at 99 Hz, once a round; the program
knows the CPU time of each of its functions. *Slow*: the tools take turns on one process, which
counts its work. *Floor*: an event without a program, switched on and
off. *Many*: 50 processes, and the whole machine. Needs root.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import results
from peers import cpu_s
from results import Figure

from purebpf.loader.perf.perf_events import PerfEvents

PROGRAM = Path(__file__).parent / "workloads" / "known_shares.py"
PROFILE = [sys.executable, "-m", "purebpf", "profile", "-U"]
PEER = "py-spy"
PHASE_S = 0.25
FUNCTIONS = ["loop", "order", "recurse", "substitute", "encode"]
FIRST = ["chrt", "-f"]
"""Program and tools have real-time priority: what else the machine does is in neither's way."""
ATTACHED_S, WINDOW_S = 2.0, 5.0
PROCESSES = 50


class Phase(NamedTuple):
    """A quarter of a second of the program."""

    began_ns: int
    function: str
    calls: int
    used_ns: dict[str, int]


class Program:
    """A program that knows its shares, read by a thread as it goes."""

    def __init__(self, seconds: float) -> None:
        command = [*FIRST, "1", sys.executable, str(PROGRAM), str(seconds)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.phases: list[Phase] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.phases.extend(Phase(*json.loads(line)) for line in self.process.stdout)

    def between(self, begin_ns: int, end_ns: int) -> list[Phase]:
        """The phases that began in this time."""
        return [phase for phase in self.phases if begin_ns <= phase.began_ns < end_ns]


@contextmanager
def known_shares(seconds: float = 36_000) -> Iterator[Program]:
    """The program, running."""
    program = Program(seconds)
    try:
        time.sleep(2)
        yield program
    finally:
        program.process.kill()
        program.process.wait()


@contextmanager
def py_spy() -> Iterator[str | None]:
    """The path of py-spy; None, and a line that says why, if it cannot be had."""
    if installed := shutil.which(PEER):
        yield installed
        return
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        install = [f"{folder}/bin/pip", "install", "-q", PEER]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"left out: pip install {PEER}: {done.stderr.strip()[-200:]}", file=sys.stderr)
        yield None if done.returncode else f"{folder}/bin/{PEER}"


def tools(spy: str | None, pid: int, rate: int, seconds: float, out: str) -> dict[str, list[str]]:
    """How each tool profiles the process."""
    ours = [*PROFILE, "-F", str(rate), "-p", str(pid), "-f", "-o", f"{out}/ours.folded"]
    commands = {"purebpf": [*ours, str(seconds)]}
    if spy:
        peer = [spy, "record", "-r", str(rate), "-p", str(pid), "-f", "raw", "--function"]
        peer += ["-d", str(round(seconds))]
        commands[PEER] = [*peer, "-o", f"{out}/spy.folded"]
        commands[f"{PEER} --native"] = [*peer, "--native", "-o", f"{out}/native.folded"]
    return commands


def start(command: list[str]) -> subprocess.Popen[bytes]:
    """A tool, with a priority above that of the program."""
    silence = subprocess.DEVNULL
    return subprocess.Popen([*FIRST, "2", *command], stdout=silence, stderr=silence)


def shares(path: str) -> dict[str, float]:
    """Percent of the samples below each function, of a folded file."""
    counts: Counter[str] = Counter()
    for line in Path(path).read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        names = {frame.partition(" (")[0] for frame in stack.split(";")}
        counts[next((name for name in FUNCTIONS if name in names), "")] += int(count)
    return {name: 100 * counts[name] / counts.total() for name in FUNCTIONS}


def farthest(left: dict[str, float], right: dict[str, float]) -> float:
    """The largest difference of a share, in points."""
    return max(abs(left[name] - right[name]) for name in FUNCTIONS)


def shares_once(spy: str | None, seconds: float) -> dict[str, float]:
    """Differences of shares and CPU seconds, of both tools on one process at the same time."""
    with tempfile.TemporaryDirectory() as out, known_shares() as program:
        commands = tools(spy, program.process.pid, 99, seconds, out)
        commands.pop(f"{PEER} --native", None)
        begin_ns = time.monotonic_ns()
        running = {name: start(command) for name, command in commands.items()}
        cpu = {name: cpu_s(process) for name, process in running.items()}
        phases = program.between(begin_ns, time.monotonic_ns())
        used = {name: phases[-1].used_ns[name] - phases[0].used_ns[name] for name in FUNCTIONS}
        truth = {name: 100 * used[name] / sum(used.values()) for name in FUNCTIONS}
        ours = shares(f"{out}/ours.folded")
        found = {"ours": farthest(ours, truth), "our CPU": cpu["purebpf"]}
        if spy:
            theirs = shares(f"{out}/spy.folded")
            found |= {"theirs": farthest(theirs, truth), "apart": farthest(ours, theirs)}
            found["their CPU"] = cpu[PEER]
        return found


def bench_shares(spy: str | None, options: argparse.Namespace) -> Iterator[Figure]:
    """Both tools against the program's clock and each other: medians of the rounds."""
    rounds = [shares_once(spy, options.seconds) for _ in range(options.rounds)]
    middle = {name: statistics.median(found[name] for found in rounds) for name in rounds[0]}
    what = f"in {options.seconds:.0f} s at 99 Hz"
    name = f"largest difference of a share to the program's own clock {what}"
    yield Figure(name, middle["ours"], "points", PEER, middle.get("theirs"))
    if spy:
        name = f"largest difference of a share to {PEER} {what}"
        yield Figure(name, middle["apart"], "points", limit=1)
    limit = 1.0 if spy else None
    name = f"CPU of the tool {what}, start and report included"
    yield Figure(name, middle["our CPU"], "s of CPU", PEER, middle.get("their CPU"), limit)


def slowed_percent(phases: list[Phase], alone: list[Phase]) -> list[float]:
    """How much longer a call took in each phase than in those of the same round without a tool."""
    calls = {
        name: statistics.median(phase.calls for phase in alone if phase.function == name)
        for name in FUNCTIONS
    }
    return [100 * (calls[phase.function] / phase.calls - 1) for phase in phases]


def bench_slow(spy: str | None, options: argparse.Namespace) -> Iterator[Figure]:
    """What each tool adds to the time of a call, the tools in turn."""
    for rate, name, limit in ((99, PEER, None), (999, PEER, 0.1), (999, f"{PEER} --native", 0.01)):
        added: dict[str, list[float]] = {"purebpf": [], name: []}
        with tempfile.TemporaryDirectory() as out, known_shares() as program:
            commands = tools(spy, program.process.pid, rate, ATTACHED_S + WINDOW_S + 1, out)
            for _ in range(options.rounds):
                alone = window(program, None)
                for tool in added.keys() & commands.keys():
                    added[tool] += slowed_percent(window(program, commands[tool]), alone)
        ours, theirs = statistics.median(added["purebpf"]), added[name]
        peer = statistics.median(theirs) if theirs else None
        limit = limit if theirs else None
        yield Figure(f"the program is slower by, at {rate} Hz", ours, "%", name, peer, limit)


def window(program: Program, command: list[str] | None) -> list[Phase]:
    """The phases of five seconds in which a tool was attached."""
    tool = start(command) if command else None
    time.sleep(ATTACHED_S)
    begin_ns = time.monotonic_ns()
    time.sleep(WINDOW_S)
    end_ns = time.monotonic_ns()
    if tool:
        cpu_s(tool)
    time.sleep(0.5)
    return program.between(begin_ns, end_ns - 250_000_000)


def bench_floor(spy: str | None, options: argparse.Namespace) -> Iterator[Figure]:
    """What an event that does nothing adds to the time of a call: no sampler costs less."""
    del spy
    added: list[float] = []
    with known_shares() as program, PerfEvents.sampling(999, disabled=1) as events:
        for _ in range(options.rounds * 4):
            alone = short_window(program)
            events.enable()
            added += slowed_percent(short_window(program), alone)
            events.disable()
    yield Figure(
        "an empty event: the program is slower by, at 999 Hz", statistics.median(added), "%"
    )


def short_window(program: Program) -> list[Phase]:
    """The phases of a turn of all functions, and a little more."""
    begin_ns = time.monotonic_ns()
    time.sleep(PHASE_S * (len(FUNCTIONS) + 2))
    end_ns = time.monotonic_ns()
    time.sleep(0.5)
    return program.between(begin_ns, end_ns - 250_000_000)


def bench_many(spy: str | None, options: argparse.Namespace) -> Iterator[Figure]:
    """The whole machine with fifty Python processes: the tool, and its program in interrupts."""
    del spy
    text = "import time\nwhile True:\n  sum(i * i for i in range(20000))\n  time.sleep(0.04)"
    with tempfile.TemporaryDirectory() as out:
        busy = [subprocess.Popen([sys.executable, "-c", text]) for _ in range(PROCESSES)]
        try:
            time.sleep(3)
            path = f"{out}/many.json"
            tool = start([*PROFILE, "-F", "99", "-o", path, str(options.seconds + 10)])
            time.sleep(8)
            before = run_time_ns(tool.pid)
            time.sleep(options.seconds)
            used = (run_time_ns(tool.pid) - before) / 1e9
            total = cpu_s(tool)
        finally:
            for process in busy:
                process.kill()
                process.wait()
        program = json.loads(Path(path).read_text())["cost"]["run_time_ns"] / 1e9
    what = f"the whole machine at 99 Hz, {PROCESSES} Python processes"
    seconds = options.seconds
    in_program = program / (seconds + 10)
    yield Figure(f"{what}: the tool", 100 * used / seconds, "% of a CPU")
    both = 100 * (used / seconds + in_program)
    yield Figure(f"{what}: tool and program", both, "% of a CPU", limit=1)
    whole = 100 * (total + program) / (seconds + 10)
    yield Figure(f"{what}: start and report, too, of {seconds + 10:.0f} s", whole, "% of a CPU")


def run_time_ns(pid: int) -> int:
    """CPU time of all threads of a process so far (/proc/PID/task/TID/schedstat)."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads)


BENCHES = {"shares": bench_shares, "slow": bench_slow, "floor": bench_floor, "many": bench_many}


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """The figures of the chosen benches."""
    with py_spy() as spy:
        for name in options.only.split(","):
            yield from BENCHES[name](spy, options)


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=4)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--only", default=",".join(BENCHES))
    sys.exit(results.run(measure, options.parse_args()))
