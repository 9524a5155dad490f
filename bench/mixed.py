"""Shares of whole user stacks of a mixed load: Debian's programs, Rust and C++, all at once.

    python bench/mixed.py [--seconds 20] [--frequency 99]

What runs: a Python loop, xz, postgres, gcc again and again, perl, node, a Rust and a C++ program. A
program that is not installed is named and left out. Prints the share of each, and why stacks were
cut. `purebpf profile` watches the whole machine; other programs are left out of these figures.
`perf record --call-graph dwarf` watches it at the same time: the CPU time of both tools is that of
all samples, from the start to named stacks, as a user types it and with perf's --no-inline. What
perf prints takes minutes. Needs root, gcc, g++ and perf.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import results
from peers import cpu_s
from results import Figure
from running import start, start_postgres, start_silently

_LEAST = 99.0
"""Percent of the stacks of the whole load that should be whole."""
_CPU = 0.1
"""How much of perf's CPU time ours may take."""
_SETTLE_S = 2

_CPP = r"""
#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
static volatile unsigned long sink;
struct Shape { virtual unsigned long area(unsigned long) = 0; virtual ~Shape() {} };
struct Square : Shape {
  unsigned long area(unsigned long n) override {
    if (n % 97 == 3) throw std::runtime_error("3");
    return n * n;
  }
};
int main() {
  Shape *shape = new Square;
  for (unsigned long turn = 0;; turn++) {
    std::map<std::string, unsigned long> found;
    std::vector<unsigned long> values;
    for (unsigned long i = 0; i < 500; i++) {
      try { values.push_back(shape->area(turn + i)); } catch (const std::exception &) { sink++; }
      found[std::to_string(i * 7919 % 501)] += i;
    }
    std::sort(values.begin(), values.end(), [](auto a, auto b) { return (a ^ 5) < (b ^ 5); });
    sink += values[0] + found.size();
  }
}
"""
_RUST = r"""
use std::collections::BTreeMap;
fn main() {
    let mut sink = 0usize;
    loop {
        let map: BTreeMap<u64, String> =
            (0..500u64).map(|i| (i.wrapping_mul(7919) % 501, format!("{}", i * 3))).collect();
        let mut texts: Vec<&String> = map.values().collect();
        texts.sort();
        sink = sink.wrapping_add(texts.len());
        if sink == 1 { println!("{}", sink); }
    }
}
"""
_C = "\n".join(
    f"int f{n}(int *a, int b) {{ for (int i = 0; i < b; i++) a[i] = a[i] * {n} + b; return a[b]; }}"
    for n in range(1, 400)
)
_PYTHON = r"""
import json
def walk(tree, depth):
    return sum(walk(tree, depth - 1) for _ in range(3)) if depth else len(json.dumps(tree))
while True:
    walk({"a": [1, 2, {"b": "c"}]}, 5)
"""
_PERL = r"""
sub walk { my ($n) = @_; return $n ? walk($n - 1) + walk($n - 1) : 1 }
while (1) {
  walk(12);
  my %h = map { $_ => "x$_" } 1..500;
  join ",", sort { $h{$a} cmp $h{$b} } keys %h;
}
"""
_NODE = r"""
function walk(n) { return n ? walk(n - 1) + walk(n - 1) : 1 }
for (;;) {
  walk(14);
  JSON.parse(JSON.stringify([...Array(500).keys()].map(i => ({i})))).sort((a, b) => b.i - a.i);
}
"""
_SQL = "select count(distinct md5(i::text)) from generate_series(1, 200000) i"
_ASKING = f"while :; do {{place}}/psql -h {{socket}} -c '{_SQL}' postgres; sleep 0.2; done"


def _compile(folder: Path) -> None:
    """The programs of our own."""
    for name, text, command in (
        ("cpp", _CPP, ["g++", "-O2", "-x", "c++"]),
        ("rust", _RUST, ["rustc", "-O", "--crate-name", "rust"]),
    ):
        if not shutil.which(command[0]):
            continue
        source = folder / f"{name}.source"
        source.write_text(text)
        subprocess.run([*command, "-o", folder / name, source], check=True)


def _commands(folder: Path) -> dict[str, list[str] | None]:
    """Every program of the load, and its command; None: it is not installed."""
    (folder / "many.c").write_text(_C)
    with (folder / "noise").open("wb") as file:
        file.write(os.urandom(1 << 22))
    python, perl, node, xz = map(shutil.which, ("/usr/bin/python3", "perl", "node", "xz"))
    forever = "while :; do {}; done"
    packing = f"{xz} -9 -k -c {folder}/noise >/dev/null"
    compiling = f"gcc -O2 -c -o {folder}/many.o {folder}/many.c"
    return {
        "python3": [python, "-c", _PYTHON] if python else None,
        "xz": ["sh", "-c", forever.format(packing)] if xz else None,
        "gcc": ["sh", "-c", forever.format(compiling)],
        "perl": [perl, "-e", _PERL] if perl else None,
        "node": [node, "-e", _NODE] if node else None,
        "rust": [str(folder / "rust")] if (folder / "rust").exists() else None,
        "c++": [str(folder / "cpp")] if (folder / "cpp").exists() else None,
    }


_PROGRAMS = {
    "python3": ("python3",),
    "xz": ("xz",),
    "gcc": ("gcc", "cc1", "as", "collect2"),
    "perl": ("perl",),
    "node": ("node",),
    "rust": ("rust",),
    "c++": ("cpp",),
    "postgres": ("postgres", "psql"),
}
"""Command names of the processes of each program."""


def _count(document: dict[str, object]) -> dict[str, Counter[str]]:
    """Weights by program and how the stacks ended: "" whole."""
    program_of = {comm: name for name, comms in _PROGRAMS.items() for comm in comms}
    ends: dict[str, Counter[str]] = {name: Counter() for name in _PROGRAMS}
    stacks = document["stacks"]
    assert isinstance(stacks, list)
    for stack in stacks:
        name = program_of.get(stack.get("process", stack["comm"]))
        if name is not None and stack["user"] != []:
            lost = stack["user"] is None
            ends[name]["lost" if lost else stack.get("cut", "")] += stack["weight"]
    return ends


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """The share of each program, and that of all."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        load = stack.enter_context(ExitStack())
        folder.chmod(0o755)
        _compile(folder)
        for name, command in _commands(folder).items():
            if command is None:
                print(f"{name} is not installed, left out")
            else:
                start(load, command)
        if not start_postgres(load, folder, _ASKING):
            print("postgres is not installed, left out")
        subprocess.run(["sleep", str(_SETTLE_S)], check=True)
        output = folder / "profile.json"
        hz, seconds = str(options.frequency), str(options.seconds)
        profile = [sys.executable, "-m", "purebpf", "profile", "-F", hz, "-o", str(output), seconds]
        data = str(folder / "perf.data")
        record = ["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", hz, "-o", data]
        recorder = [*record, "--call-graph", "dwarf", "--", "sleep", seconds]
        our_s, record_s = map(cpu_s, list(map(start_silently, (profile, recorder))))
        ends = _count(json.loads(output.read_text()))
        load.close()
        script_s = [
            cpu_s(start_silently(["perf", "script", "-i", data, *words]))
            for words in ((), ("--no-inline",))
        ]
    everything: Counter[str] = Counter()
    for name, counts in ends.items():
        everything += counts
        yield from _figures(name, counts)
    yield from _figures("all of them", everything, 100 - _LEAST)
    for peer_s, words in zip(script_s, ("perf script", "perf script --no-inline"), strict=True):
        peer = f"perf record --call-graph dwarf, {words}"
        yield Figure("CPU of the whole tool", our_s, "s", peer, record_s + peer_s, _CPU)


def _figures(name: str, counts: Counter[str], limit: float | None = None) -> Iterator[Figure]:
    """How many stacks there are, and how many are not whole: less is better."""
    samples = counts.total()
    if not samples:
        return
    reasons = ", ".join(f"{why} {count}" for why, count in counts.most_common() if why)
    yield Figure(f"{name}: samples", samples, "")
    why = f" ({reasons})" if reasons else ""
    yield Figure(f"{name}: not whole{why}", 100 - 100 * counts[""] / samples, "%", limit=limit)


if __name__ == "__main__":
    parser = results.parser(__doc__, rounds=1)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--frequency", type=int, default=99)
    sys.exit(results.run(measure, parser.parse_args()))
