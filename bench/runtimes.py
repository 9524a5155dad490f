"""Whole and wrong user stacks of programs that know their own callers, by language and tool.

    python bench/runtimes.py [--seconds 3] [--perf] [NAME ...]

Each program calls level1, level2 and leaf from main for ever, and spends its time in leaf. A stack
that is called whole, and lacks one of these functions, is wrong: the exit code is 1 then. Programs
whose compiler is not installed, and those that do not build, are listed with the reason. With
--perf, the same programs are measured with perf's frame pointers and DWARF: the share of stacks in
leaf that have all of these functions. Needs root, and perf for --perf.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

C = """
#define N __attribute__((noinline, noclone))
volatile unsigned long turns;
N long leaf(long n) { for (int i = 0; i < 4000; i++) turns += i ^ n; return n + turns; }
N long level2(long n) { volatile char room[64]; room[n & 63] = 1; return leaf(n) + room[n & 63]; }
N long level1(long n) { return level2(n + 1) + turns; }
int main(void) { for (;;) turns += level1(turns & 7); }
"""
MEMCPY = """
#include <string.h>
#define N __attribute__((noinline, noclone))
static char from[1 << 16], to[1 << 16];
volatile unsigned long turns;
N long leaf(long n) { memcpy(to, from, 4096 + n); return n + to[n]; }
N long level2(long n) { volatile char room[64]; room[n & 63] = 1; return leaf(n) + room[n & 63]; }
N long level1(long n) { return level2(n + 1) + turns; }
int main(void) { for (;;) turns += level1(turns & 7); }
"""
FIBER = """
#include <boost/context/fiber.hpp>
#define N __attribute__((noinline, noclone))
using boost::context::fiber;
volatile unsigned long turns;
N long leaf(long n) { for (int i = 0; i < 4000; i++) turns = turns + (i ^ n); return n + turns; }
N long level2(long n) { return leaf(n) + turns; }
N long level1(long n) { return level2(n + 1) + turns; }
int main() {
    fiber work([](fiber &&back) {
        for (;;) {
            turns = turns + level1(turns & 7);
            back = std::move(back).resume();
        }
        return std::move(back);
    });
    for (;;) work = std::move(work).resume();
}
"""
CXX = """
#include <functional>
struct Work { virtual long level2(long n) __attribute__((noinline)); };
volatile unsigned long turns;
__attribute__((noinline)) long leaf(long n) {
    for (int i = 0; i < 4000; i++) turns = turns + (i ^ n);
    return n + turns;
}
long Work::level2(long n) { return leaf(n) + turns; }
__attribute__((noinline)) long level1(const std::function<long(long)> &f, long n) {
    try { return f(n) + turns; } catch (...) { return 0; }
}
int main() {
    Work work;
    for (;;) turns = turns + level1([&](long n) { return work.level2(n) + 1; }, turns & 7);
}
"""
RUST = """
use std::hint::black_box;
#[inline(never)] fn leaf(n: u64) -> u64 {
    let mut sum = n;
    for i in 0..4000u64 { sum = black_box(sum ^ i); }
    sum
}
#[inline(never)] fn level2(n: u64) -> u64 { black_box(leaf(n)) + 1 }
#[inline(never)] fn level1(n: u64) -> u64 { black_box(level2(n + 1)) + 1 }
fn main() { let mut n = 0; loop { n = black_box(level1(n & 7)); } }
"""
GO = """
package main

var turns uint64

//go:noinline
func leaf(n uint64) uint64 {
    for i := uint64(0); i < 4000; i++ { turns += i ^ n }
    return n + turns
}

//go:noinline
func level2(n uint64) uint64 { return leaf(n) + turns }

//go:noinline
func level1(n uint64) uint64 { return level2(n+1) + turns }

func main() { for { turns += level1(turns & 7) } }
"""
CGO = """
package main

/*
volatile unsigned long turns;
__attribute__((noinline)) long leaf(long n) {
    for (int i = 0; i < 400000; i++) turns += i ^ n;
    return n + turns;
}
__attribute__((noinline)) long in_c(long n) { return leaf(n) + turns; }
*/
import "C"

//go:noinline
func level2(n int64) int64 { return int64(C.in_c(C.long(n))) + 1 }

//go:noinline
func level1(n int64) int64 { return level2(n+1) + 1 }

func main() { n := int64(0); for { n = level1(n & 7) } }
"""
OCAML = """
let turns = ref 0
let [@inline never] leaf n = for i = 0 to 4000 do turns := !turns lxor (i + n) done; !turns + n
let [@inline never] level2 n = leaf n + !turns
let [@inline never] level1 n = 1 + List.fold_left (fun sum k -> sum + level2 k) 0 [n; n + 1]
let () = while true do turns := level1 (!turns land 7) done
"""
FORTRAN = """
module work
  integer(8), volatile :: turns = 0
contains
  recursive integer(8) function leaf(n) result(r)
    integer(8), value :: n
    integer :: i
    do i = 1, 4000
      turns = ieor(turns, n + i)
    end do
    r = turns + n
  end function
  recursive integer(8) function level2(n) result(r)
    integer(8), value :: n
    r = leaf(n) + turns
  end function
  recursive integer(8) function level1(n) result(r)
    integer(8), value :: n
    r = level2(n + 1) + turns
  end function
end module
program main
  use work
  do
    turns = level1(iand(turns, 7_8))
  end do
end program
"""
ADA = """
procedure Hot is
   Turns : Long_Integer := 0;
   pragma Volatile (Turns);
   function Leaf (N : Long_Integer) return Long_Integer with No_Inline;
   function Level2 (N : Long_Integer) return Long_Integer with No_Inline;
   function Level1 (N : Long_Integer) return Long_Integer with No_Inline;
   function Leaf (N : Long_Integer) return Long_Integer is
   begin
      for I in Long_Integer range 1 .. 4000 loop
         Turns := (Turns + I * N) mod 1000003;
      end loop;
      return Turns + N;
   end Leaf;
   function Level2 (N : Long_Integer) return Long_Integer is (Leaf (N) + Turns);
   function Level1 (N : Long_Integer) return Long_Integer is (Level2 (N + 1) + Turns);
begin
   loop
      Turns := Level1 (Turns mod 8) mod 1000003;
   end loop;
end Hot;
"""
D = """
import core.volatile;
__gshared ulong turns;
extern (C) pragma(inline, false) ulong leaf(ulong n) {
    foreach (i; 0 .. 4000) volatileStore(&turns, volatileLoad(&turns) ^ (n + i));
    return turns + n;
}
extern (C) pragma(inline, false) ulong level2(ulong n) { return leaf(n) + turns; }
extern (C) pragma(inline, false) ulong level1(ulong n) { return level2(n + 1) + turns; }
void main() { for (;;) turns = level1(turns & 7); }
"""
PYTHON = """
def leaf(n):
    for i in range(4000):
        n ^= i
    return n
def level2(n):
    return leaf(n) + 1
def level1(n):
    return level2(n) + 1
def deeper(left):
    while not left:
        level1(7)
    deeper(left - 1)
def main(depth):
    deeper(depth)
import sys
sys.setrecursionlimit(5000)
main(int(sys.argv[1]))
"""
_CHAIN = ("main", "level1", "level2", "leaf")
_LEVELS = ("level1", "level2", "leaf")
"""For languages in which several functions have main in their names."""


class Workload(NamedTuple):
    """A program.

    Attributes:
        name: of the row.
        suffix: of the source file.
        source: its text.
        build: the command, with {source} and {program}; empty: nothing is built.
        run: the command, with the same.
        chain: patterns of the functions, the outermost first.
        options: for the profiler.
    """

    name: str
    suffix: str
    source: str
    build: str
    run: str = "{program}"
    chain: tuple[str, ...] = _CHAIN
    options: tuple[str, ...] = ()


def _python(version: str, depth: int, *options: str) -> Workload:
    name = f"python{version} depth {depth} {' '.join(options)}".strip()
    chain = ("main", *["deeper"] * (depth + 1), "level1", "level2", "leaf")
    return Workload(name, "py", PYTHON, "", f"python{version} {{source}} {depth}", chain, options)


WORKLOADS = (
    Workload("gcc -O2", "c", C, "gcc -O2 -fomit-frame-pointer -o {program} {source}"),
    Workload("gcc -O2 static", "c", C, "gcc -O2 -static -o {program} {source}"),
    Workload(
        "gcc -O2 stripped of .eh_frame",
        "c",
        C,
        "gcc -O2 -g -fno-asynchronous-unwind-tables -o {program} {source}",
    ),
    Workload("gcc -m32 -O2", "c", C, "gcc -m32 -O2 -o {program} {source}"),
    Workload(
        "gcc -m32 -O2, frame pointers",
        "c",
        C,
        "gcc -m32 -O2 -fno-omit-frame-pointer -o {program} {source}",
    ),
    Workload("gcc -m32 -O2 static", "c", C, "gcc -m32 -O2 -static -o {program} {source}"),
    Workload(
        "gcc -m32 -O2 stripped of .eh_frame",
        "c",
        C,
        "gcc -m32 -O2 -g -fno-asynchronous-unwind-tables -o {program} {source}",
    ),
    Workload("gcc -m32 -O2, memcpy", "c", MEMCPY, "gcc -m32 -O2 -o {program} {source}"),
    Workload("gcc -O2, memcpy", "c", MEMCPY, "gcc -O2 -o {program} {source}"),
    Workload("clang -O2", "c", C, "clang-19 -O2 -fomit-frame-pointer -o {program} {source}"),
    Workload("musl", "c", C, "musl-gcc -O2 -o {program} {source}"),
    Workload("musl static", "c", C, "musl-gcc -static -O2 -o {program} {source}"),
    Workload("musl, memcpy", "c", MEMCPY, "musl-gcc -O2 -o {program} {source}"),
    Workload("musl static, memcpy", "c", MEMCPY, "musl-gcc -static -O2 -o {program} {source}"),
    Workload(
        "boost's fibers",
        "cpp",
        FIBER,
        "g++ -O2 -o {program} {source} -lboost_context",
        chain=_LEVELS,
    ),
    Workload("g++ -O2", "cpp", CXX, "g++ -O2 -fomit-frame-pointer -o {program} {source}"),
    Workload("rustc -O", "rs", RUST, "rustc -O -o {program} {source}", chain=_LEVELS),
    Workload(
        "rustc -O panic=abort",
        "rs",
        RUST,
        "rustc -O -C panic=abort -o {program} {source}",
        chain=_LEVELS,
    ),
    Workload("go", "go", GO, "go build -o {program} {source}", chain=_LEVELS),
    Workload(
        "go, stripped",
        "go",
        GO,
        "go build -ldflags=-s -o {program} {source}",
        chain=_LEVELS,
    ),
    Workload(
        "cgo",
        "go",
        CGO,
        "go build -o {program} {source}",
        chain=("level1", "level2", "in_c", "leaf"),
    ),
    Workload("ocaml", "ml", OCAML, "ocamlopt -o {program} {source}", chain=_LEVELS),
    Workload(
        "gfortran -O2",
        "f90",
        FORTRAN,
        "gfortran -O2 -fno-inline -fno-optimize-sibling-calls -o {program} {source}",
    ),
    Workload(
        "gnat -O2",
        "adb",
        ADA,
        "gnatmake -q -O2 {source} -o {program}",
        chain=("_ada_hot", "level1", "level2", "leaf"),
    ),
    Workload(
        "gdc -O2",
        "d",
        D,
        "gdc -O2 -fno-inline -o {program} {source}",
        chain=("_Dmain", "level1", "level2", "leaf"),
    ),
    _python("3", 10),
    _python("3", 90),
    _python("3", 500),
    _python("3", 500, "--call-graph", "deep"),
    _python("3", 1000, "--call-graph", "deep"),
)


class Row(NamedTuple):
    """Stacks of a run: how many, how many of them whole, and how many whole ones are wrong."""

    samples: int
    whole: int
    wrong: int
    cut: dict[str, int]
    example: str
    perf: tuple[float, ...] = ()


def build(workload: Workload, folder: Path) -> tuple[str, ...] | str:
    """Build a program; return the command that runs it, or why there is none."""
    stem = "hot" if workload.suffix == "adb" else f"p{abs(hash(workload.name))}"
    source, program = folder / f"{stem}.{workload.suffix}", folder / f"{stem}.bin"
    source.write_text(workload.source)
    names = {"source": str(source), "program": str(program)}
    if workload.build:
        command = workload.build.format(**names).split()
        if shutil.which(command[0]) is None:
            return f"{command[0]} is not installed"
        built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if built.returncode:
            return f"{command[0]}: {built.stderr.strip().splitlines()[-1]}"
    run = workload.run.format(**names).split()
    return tuple(run) if shutil.which(run[0]) else f"{run[0]} is not installed"


def follows(chain: tuple[str, ...], functions: list[str]) -> bool:
    """Return True if a stack begins with the chain, up to the function that it is in."""
    names = [*dict.fromkeys(chain)]
    found = [name for function in functions for name in names if is_named(function, name)]
    return not found or found == [*chain[: len(found)]]


def is_named(function: str, name: str) -> bool:
    """Return True if a symbol is that of a function: `work::leaf`, `hot__leaf.0`, `leaf(long)`."""
    plain = re.sub(r"<.*>", "", function)  # arguments of templates name other functions
    return bool(re.search(rf"(^|\W|[a-zA-Z0-9]__|_MOD_){name}(_\d+)?(\W|$)", plain))


def profile(pid: int, workload: Workload, seconds: float) -> Row:
    """Measure a running program with purebpf."""
    command = (
        *(sys.executable, "-m", "purebpf", "profile", "-U", "-F", "199", "-p", str(pid)),
        *workload.options,
        "--format",
        "json",
        str(seconds),
    )
    printed = subprocess.run(command, capture_output=True, text=True, check=False)
    if printed.returncode:
        return Row(0, 0, 0, {}, printed.stderr.strip())
    data = json.loads(printed.stdout)
    names, cut = data["frames"], {}
    samples = whole = wrong = 0
    example = ""
    for stack in data["stacks"]:
        count = stack["weight"]
        functions = [names[at].get("name") or "?" for at in reversed(stack["user"])]
        samples += count
        if reason := stack.get("cut"):
            cut[reason] = cut.get(reason, 0) + count
            example = example or ";".join(functions[:6])
            continue
        whole += count
        if not follows(workload.chain, functions):
            wrong += count
            example = ";".join(functions)
    return Row(samples, whole, wrong, cut, example[-300:])


def measure(workload: Workload, folder: Path, seconds: float, *, with_perf: bool) -> str | Row:
    """Build, run and measure a program; return why it was not measured instead."""
    command = build(workload, folder)
    if isinstance(command, str):
        return command
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            time.sleep(0.5)
            if running.poll() is not None:
                return f"it ended with {running.returncode}"
            row = profile(running.pid, workload, seconds)
            if with_perf:
                shares = [perf(running.pid, workload, mode, seconds) for mode in ("fp", "dwarf")]
                row = row._replace(perf=tuple(shares))
            return row
        finally:
            running.kill()


def perf(pid: int, workload: Workload, mode: str, seconds: float) -> float:
    """Return the share of perf's stacks in leaf that reach the outermost function, in percent."""
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/perf.data"
        record = ("perf", "record", "-q", "-e", "cpu-clock:u", "-F", "199", "--call-graph", mode)
        command = (*record, "-p", str(pid), "-o", data, "sleep", str(seconds))
        subprocess.run(command, capture_output=True, check=True)
        script = ("perf", "script", "-i", data, "-F", "ip,sym", "--no-inline")
        printed = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    stacks = [
        [line.split(maxsplit=1)[-1] for line in reversed(stack.strip().splitlines())]
        for stack in printed.split("\n\n")
        if workload.chain[-1] in stack
    ]
    whole = [stack for stack in stacks if is_complete(workload.chain, stack)]
    return 100 * len(whole) / max(len(stacks), 1)


def is_complete(chain: tuple[str, ...], functions: list[str]) -> bool:
    """Return True if a stack of the innermost function has all callers, and one above them."""
    is_from_root = not is_named(functions[0], chain[0]) or chain[0] == "main"
    in_leaf = any(is_named(function, chain[-1]) for function in functions)
    callers = sum(is_named(function, name) for function in functions for name in {*chain})
    return is_from_root and in_leaf and callers == len(chain) and follows(chain, functions)


def describe(row: Row) -> str:
    """Return a row as text."""
    texts = [f"{row.samples:6}", f"{100 * row.whole / row.samples:6.1f} %", f"{row.wrong:6}"]
    texts += [f"{share:6.1f} %" for share in row.perf]
    texts += [f"{reason}={count}" for reason, count in row.cut.items()]
    return " ".join(texts + ([row.example] if row.wrong else []))


def main() -> int:
    """Print a row for each program; return 1 if a stack was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--perf", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    peers = "perf fp, perf dwarf" if options.perf else ""
    print(f"{'program':36} stacks   whole  wrong {peers}")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for workload in WORKLOADS:
            if options.names and not any(name in workload.name for name in options.names):
                continue
            row = measure(workload, Path(folder), options.seconds, with_perf=options.perf)
            is_row = isinstance(row, Row) and row.samples
            text = describe(row) if is_row else f"not measured: {row}"
            print(f"{workload.name:36} {text}", flush=True)
            wrong += row.wrong if is_row else 0
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
