"""What a script costs the program that it watches, beside bpftrace and C by clang -O2.

    python bench/script.py [--rounds 5] [--calls 53] [--bpftrace COMMAND] [NAME ...]

Twelve scripts watch a loop of getppid(2), one of them openat(2). What is compared is the CPU that a
tool adds to a call, the least of many short rounds, which find the moments when nothing else runs;
the tools take turns. Strings have the same length on
all sides. bench/workloads/scripts.bpf.c has the same scripts as a C programmer writes them, for the
same attach points as ours. Needs root, gcc, clang-19 and bpftrace; without it ours is measured
alone.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import results
from peers import attached, compiled, workload
from results import Figure

from purebpf import load, read_object

OURS, CLANG = "purebpf script", "clang -O2"
ROUNDS_OF_LOOP = 40_000
OF_BPFTRACE, OF_CLANG = 0.85, 1.1
"""How much of what the peers add, ours may add."""
_FIRST_CPU = ("taskset", "-c", "0")
_ENTER = "tracepoint:raw_syscalls:sys_enter /pid == $1/"
SCRIPTS = {
    "count": f"{_ENTER} {{ @[args.id] = count(); }}",
    "scalar": f"{_ENTER} {{ @ = count(); }}",
    "comm": f"{_ENTER} {{ @[comm, args.id] = count(); }}",
    "latency": f"{_ENTER} {{ @start[tid] = nsecs; }} tracepoint:raw_syscalls:sys_exit "
    "/@start[tid]/ { @us = hist((nsecs - @start[tid]) / 1000); delete(@start, tid); }",
    "hist": f"{_ENTER} {{ @ = hist(args.id); }}",
    "plus": f"{_ENTER} {{ @[args.id]++; }}",
    "comparison": 'tracepoint:raw_syscalls:sys_enter /comm == "calls"/ { @ = count(); }',
    "missed": "tracepoint:raw_syscalls:sys_enter /pid == 1/ { @ = count(); }",
    "one_call": "tracepoint:syscalls:sys_enter_getppid /pid == $1/ { @ = count(); }",
    "branches": f"{_ENTER} {{ $x = args.id; if ($x > 100 && $x != 231) "
    "{ @a = sum($x * 3 + 1); } else { @b[$x % 7] = count(); } }",
    "linear": f"{_ENTER} {{ @[tid] = lhist(args.id, 0, 400, 10); }}",
    "names": "config = { max_strlen = 200 } tracepoint:syscalls:sys_enter_openat /pid == $1/ "
    "{ @[comm, str(args.filename)] = count(); }",
}
"""By the names of the programs in C; `pid == $1` is the loop."""


@contextmanager
def in_c(path: str, name: str, pid: int) -> Iterator[None]:
    """The same script by clang."""
    names = [name, f"{name}_exit"] if name == "latency" else [name]
    with load(read_object(path).set(target=pid).only(*names)) as programs:
        programs.attach()
        yield


def added_ns(loop: list[str], watch: object) -> float:
    """What the loop says of a call under a tool."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen(loop, **pipes) as child,  # type: ignore[call-overload]
        watch(child.pid),  # type: ignore[operator]
    ):
        return float(child.communicate("\n")[0])


def tools(name: str, path: str, bpftrace: list[str]) -> dict[str, object]:
    """Each side's context manager by its name; it takes the process of the loop."""

    def nothing(pid: int) -> AbstractContextManager[None]:
        del pid
        return contextmanager(lambda: iter([None]))()

    text = SCRIPTS[name]
    made: dict[str, object] = {"nothing": nothing}
    ours = [sys.executable, "-m", "purebpf", "script", "-e", text]
    made[OURS] = lambda pid: attached([*_FIRST_CPU, *ours, str(pid)])
    if bpftrace:
        made["bpftrace"] = lambda pid: attached([*_FIRST_CPU, *bpftrace, "-e", text, str(pid)])
    made[CLANG] = lambda pid: in_c(path, name, pid)
    return made


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """Each script under each tool in turn."""
    bpftrace = shlex.split(options.bpftrace)
    version = ""
    if bpftrace and shutil.which(bpftrace[0]):
        done = subprocess.run([*bpftrace, "--version"], check=True, capture_output=True, text=True)
        version = done.stdout.strip().replace(" v", " ")
    else:
        print(f"left out, not installed: {options.bpftrace}", file=sys.stderr)
        bpftrace = []
    with tempfile.TemporaryDirectory() as folder:
        program = workload("calls", folder)
        path = compiled("scripts", folder)
        for name in options.names or SCRIPTS:
            kind = ["open"] if name == "names" else []
            loop = ["taskset", "-c", "1", program, str(options.calls), str(ROUNDS_OF_LOOP), *kind]
            costs: dict[str, list[float]] = {}
            for _ in range(options.rounds):
                for side, watch in tools(name, path, bpftrace).items():
                    costs.setdefault(side, []).append(added_ns(loop, watch))
            least = {side: min(values) for side, values in costs.items()}
            base = least.pop("nothing")
            added = {side: value - base for side, value in least.items()}
            if bpftrace:
                theirs = added["bpftrace"]
                yield Figure(f"{name}: adds", added[OURS], "ns", version, theirs, OF_BPFTRACE)
            yield Figure(f"{name}: adds", added[OURS], "ns", CLANG, added[CLANG], OF_CLANG)


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=5)
    options.add_argument("names", nargs="*", metavar="NAME", help="of a script, default: all")
    options.add_argument("--calls", type=int, default=53)
    options.add_argument("--bpftrace", default="bpftrace", help="its command")
    sys.exit(results.run(measure, options.parse_args()))
