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

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.runtime_sources import (
    ADA,
    CGO,
    CXX,
    FIBER,
    FORTRAN,
    GENERATORS,
    GO,
    IN_MEMORY,
    JAVASCRIPT,
    LISP,
    MEMCPY,
    NUMBA,
    OCAML,
    PYTHON,
    RUST,
    C,
    D,
)

_CHAIN = ("main", "level1", "level2", "leaf")
_BETWEEN_CALLS = 30
_PYTHON_3_13 = next(
    map(str, Path.home().glob(".pyenv/versions/3.13.*/bin/python3.13")), "python3.13"
)
"""The shims of pyenv know the chosen version only."""
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
        least: functions of whole stacks, where nothing names them; all but one in thirty, as the
            program is now and then between two calls.
    """

    name: str
    suffix: str
    source: str
    build: str
    run: str = "{program}"
    chain: tuple[str, ...] = _CHAIN
    options: tuple[str, ...] = ()
    least: int = 0


def _python(version: str, depth: int, *options: str) -> Workload:
    name = f"python{version} depth {depth} {' '.join(options)}".strip()
    chain = ("main", *["deeper"] * (depth + 1), "level1", "level2", "leaf")
    return Workload(name, "py", PYTHON, "", f"python{version} {{source}} {depth}", chain, options)


def _generators(version: str, depth: int) -> Workload:
    name = f"generators of python{version}, depth {depth}"
    chain = ("main", *["deeper"] * (depth + 1), "level1", "level2", "leaf")
    program = _PYTHON_3_13 if version == "3.13" else f"python{version}"
    return Workload(name, "py", GENERATORS, "", f"{program} {{source}} {depth}", chain)


TOOLS = Path(__file__).parents[1] / "build/runtimes"
"""`runtimes_for_tests` of scripts/packages.sh installs there what is in pip and npm."""
_BUN = "{tools}/node_modules/bun/bin/bun.exe"
_DENO = "{tools}/node_modules/@deno/linux-x64-glibc/deno"

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
    Workload(
        "zig cc, musl",
        "c",
        C,
        "{tools}/python/ziglang/zig cc -target x86_64-linux-musl -O2 -o {program} {source}",
    ),
    Workload(
        "zig cc, musl, stripped",
        "c",
        C,
        "{tools}/python/ziglang/zig cc -target x86_64-linux-musl -O2 -s -o {program} {source}",
        least=5,
    ),
    Workload("bun", "js", JAVASCRIPT, "", _BUN + " {source}", (), least=10),
    Workload("deno", "js", JAVASCRIPT, "", _DENO + " run {source}", (), least=10),
    Workload("SBCL", "lisp", LISP, "", "sbcl --noinform --load {source}", (), least=30),
    Workload(
        "memfd",
        "c",
        C,
        "gcc -O2 -fomit-frame-pointer -o {program} {source}",
        "{python} {memory} {program}",
    ),
    Workload(
        "numba",
        "py",
        NUMBA,
        "",
        "env PYTHONPATH={tools}/python {python} {source}",
        ("main", "level1", "level2"),
    ),
    Workload(
        "python -X perf",
        "py",
        PYTHON,
        "",
        f"{_PYTHON_3_13} -X perf {{source}} 10",
        ("main", *["deeper"] * 11, "level1", "level2", "leaf"),
    ),
    Workload(
        "python -X perf, deep",
        "py",
        PYTHON,
        "",
        f"{_PYTHON_3_13} -X perf {{source}} 60",
        ("main", *["deeper"] * 61, "level1", "level2", "leaf"),
    ),
    *(_generators(version, depth) for version in ("3", "3.13") for depth in (10, 80)),
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
    memory = folder / "in_memory.py"
    memory.write_text(IN_MEMORY)
    names = {
        "source": str(source),
        "program": str(program),
        "memory": str(memory),
        "python": sys.executable,
        "tools": str(TOOLS),
    }
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
    """Return True if a symbol is that of a function: `work::leaf`, `hot__leaf.0`, `leaf(long)`.

    The trampolines of `python -X perf` are called `py::leaf:FILE`, and stand beside the functions.
    """
    if function.startswith("py::"):
        return False
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
    samples = whole = wrong = shallow = 0
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
        if len(functions) < workload.least:
            shallow += count
            example = example or ";".join(functions)
        if not follows(workload.chain, functions):
            wrong += count
            example = ";".join(functions)
    if shallow * _BETWEEN_CALLS > whole:
        wrong += shallow
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
