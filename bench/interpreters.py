"""Stacks of interpreters by language and version: whole, possible, and their set-up.

    python bench/interpreters.py [--samples 1000] [--only stacks,setup,many] [NAME ...]

*Stacks*: programs of the tests, whose functions have few callers, are sampled until enough samples
have their functions. A stack is whole if it reaches the program's first function, and wrong if the
program cannot have it; the exit code is 1 then. *Setup*: CPU time until BPF knows a process, for
the first of a file and for the next one. *Many*: CPU time that 50 JVMs add to a profile of the
whole machine.

JVMs, nodes, rubies and phps are those of the tests: PUREBPF_JVMS, PUREBPF_NODES, PUREBPF_RUBIES and
PUREBPF_PHPS name more. Needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from purebpf.results.model.profile import Profile, Row  # noqa: E402
from purebpf.symbols.frame import Frame  # noqa: E402
from purebpf.tools.profile import ProfileOptions, Profiler  # noqa: E402
from tests.commands.profile import test_java_frames as java_test  # noqa: E402
from tests.commands.profile import test_javascript_frames as node_test  # noqa: E402
from tests.commands.profile import test_php as php_test  # noqa: E402
from tests.commands.profile import test_ruby as ruby_test  # noqa: E402
from tests.support.programs import jvms, nodes, phps, rubies  # noqa: E402

Named = list[tuple[str, int]]
"""Functions of the program with their lines, innermost first."""
_ROUNDS = 40
_JVMS = 50
_PHPS = ("", "opcache", "function", "tracing")

_JAVA_DEPTH = """
public class Depth {
    static volatile boolean isReady;
    static volatile int sink;
    static int down(int left) {
        if (left > 0) return down(left - 1) + 1;
        if (!isReady) return 1;
        System.out.println("ready");
        while (true) sink = sink * 31 + 1;
    }
    public static void main(String[] arguments) {
        int depth = Integer.parseInt(arguments[0]);
        for (int turn = 0; turn < 30000; turn++) sink += down(depth);
        isReady = true;
        down(depth);
    }
}
"""
_NODE_DEPTH = """
let isReady = false, sink = 0;
function down(left) {
  if (left > 0) return down(left - 1) + 1;
  if (!isReady) return 1;
  require('fs').writeSync(1, 'ready\\n');
  while (true) sink = (sink * 31 + 1) | 0;
}
const depth = Number(process.argv[2]);
for (let turn = 0; turn < 30000; turn++) down(depth);
isReady = true;
down(depth);
"""
_RUBY_DEPTH = """
def down(left)
  return down(left - 1) + 1 if left > 0
  puts "ready"
  $stdout.flush
  x = 0
  while true; x = (x * 31 + 1) % 1000003; end
end
down(ARGV[0].to_i)
"""
_PHP_DEPTH = """<?php
function down($left) {
  if ($left > 0) return down($left - 1) + 1;
  echo "ready\\n";
  $x = 0;
  while (true) $x = ($x * 31 + 1) % 1000003;
}
down((int) $argv[1]);
"""
_PYTHON_DEPTH = """
import sys
def down(left):
    if left > 0:
        return down(left - 1) + 1
    print("ready", flush=True)
    x = 0
    while True:
        x = (x * 31 + 1) % 1000003
down(int(sys.argv[1]))
"""


class Program(NamedTuple):
    """A program of one language and version.

    Attributes:
        name: of its row.
        command: starts it.
        own: the functions of the program in a row.
        check: raises AssertionError if the program cannot have these.
        root: the first function of the program.
    """

    name: str
    command: Sequence[str | Path]
    own: Callable[[Row], Named]
    check: Callable[[Named], None]
    root: str


def _of_callers(callers: dict[str, set[str]]) -> Callable[[Row], Named]:
    def own(row: Row) -> Named:
        frames = [frame for frame in row.user or () if isinstance(frame, Frame)]
        return [(frame.name, frame.line) for frame in frames if frame.name in callers]

    return own


def _possible(is_possible: Callable[[tuple[str, ...]], bool]) -> Callable[[Named], None]:
    def check(stack: Named) -> None:
        assert is_possible(tuple(name for name, _ in reversed(stack)))

    return check


def _compiled(folder: Path, name: str, text: str) -> Path:
    (folder / f"{name}.java").write_text(text)
    line = ["javac", "--release", "11", "-d", folder, folder / f"{name}.java"]
    subprocess.run(line, check=True)
    return folder


def programs(folder: Path) -> Iterator[Program]:
    """Yield the programs of all versions that are here."""
    if jvms.every():
        classes = _compiled(folder, "Chain", java_test.PROGRAM)
    for home in jvms.every():
        for options in ((), ("-Xint",), ("-XX:TieredStopAtLevel=1",)):
            command = [home / "bin/java", *options, "-cp", classes, "Chain"]
            name = " ".join((f"java {jvms.major(home)}", *options))
            yield Program(name, command, java_test.own, java_test.check, "Chain.main")
    script = folder / "busy.js"
    script.write_text(node_test.PROGRAM)
    for node in nodes.every():
        version = subprocess.run([node, "-v"], capture_output=True, text=True, check=True).stdout
        own = lambda row: node_test.own(row, str(script))  # noqa: E731
        name = f"node {version.strip().lstrip('v')}"
        yield Program(name, [node, script], own, node_test.check, "main")
    for ruby in rubies.every():
        name = "ruby {}.{}".format(*rubies.release(ruby))
        for options in ((), ("--yjit",)):
            command = [*rubies.command(ruby), *options, ruby_test.PROGRAM]
            yield Program(
                " ".join((name, *options)),
                command,
                _of_callers(ruby_test.CALLERS),
                _possible(ruby_test.is_possible),
                "<main>",
            )
    for php in phps.every():
        asked = [*phps.command(php), "-r", "echo PHP_VERSION;"]
        version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        for kind, options in zip(_PHPS, php_test.OPTIONS, strict=True):
            yield Program(
                f"php {version} {kind}".strip(),
                [*phps.command(php), *options, php_test.PROGRAM],
                _of_callers(php_test.CALLERS),
                _possible(php_test.is_possible),
                "{main}",
            )


@contextmanager
def started(command: Sequence[str | Path]) -> Iterator[int]:
    """Run a program that prints a line when it is ready; its number."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise SystemExit(f"it ended: {' '.join(map(str, command))}")
            time.sleep(0.5)
            yield process.pid
        finally:
            process.kill()


def sampled(pid: int, seconds: float, frequency: int = 499) -> Profile:
    """Profile a process."""
    options = ProfileOptions(
        pids=(pid,), frequency=frequency, duration_s=seconds, python_lines=True
    )
    with Profiler(options) as profiler:
        profiler.wait()
        return profiler.stop()


def bench_stacks(folder: Path, options: argparse.Namespace) -> int:
    """Print a row for each program; return how many stacks were wrong."""
    print(f"{'program':36} samples   whole  wrong  cut")
    all_wrong = 0
    for program in programs(folder):
        if options.names and not any(name in program.name for name in options.names):
            continue
        total = whole = wrong = cut = 0
        example = ""
        with started(program.command) as pid:
            sampled(pid, 1)  # the first samples have no tables
            for _ in range(_ROUNDS):
                for row in sampled(pid, 3).rows():
                    if not (stack := program.own(row)):
                        continue
                    total += row.weight
                    cut += row.weight * bool(row.marks.end.cut)
                    if stack[-1][0] != program.root:
                        example = example or f"{row.marks.end.cut}: {stack}"
                        continue
                    whole += row.weight
                    try:
                        program.check(stack)
                    except (AssertionError, KeyError):
                        wrong += row.weight
                        example = str(stack)
                if total >= options.samples:
                    break
        share = 100 * whole / max(total, 1)
        print(f"{program.name:36} {total:7} {share:5.1f} % {wrong:6} {cut:4} {example}", flush=True)
        all_wrong += wrong
    return all_wrong


def depths(folder: Path) -> Iterator[tuple[str, list[str | Path]]]:
    """Yield a name, and the command of a recursion."""
    for name, text in (
        ("depth.js", _NODE_DEPTH),
        ("depth.rb", _RUBY_DEPTH),
        ("depth.php", _PHP_DEPTH),
        ("depth.py", _PYTHON_DEPTH),
    ):
        (folder / name).write_text(text)
    yield "python", [sys.executable, folder / "depth.py"]
    if jvms.every():
        _compiled(folder, "Depth", _JAVA_DEPTH)
    for home in jvms.every():
        for kind in ("-Xint", "-XX:-Inline"):
            name = f"java {jvms.major(home)} {kind}"
            yield name, [home / "bin/java", kind, "-cp", folder, "Depth"]
    for node in nodes.every():
        yield f"node {nodes.v8_version(node)}", [node, folder / "depth.js"]
    for ruby in rubies.every():
        name = "ruby {}.{}".format(*rubies.release(ruby))
        yield name, [*rubies.command(ruby), folder / "depth.rb"]
    for php in phps.every():
        yield f"php {php}", [*phps.command(php), folder / "depth.php"]


_SETUP = """
import sys, time
from importlib import import_module
sys.path.insert(0, sys.argv[1])
module, function = sys.argv[2].split(":")
for pid in map(int, sys.argv[3:]):
    began = time.process_time_ns()
    found = getattr(import_module(module), function)(pid)
    if hasattr(found, "look"):
        found.look()
    else:
        found.pack(0, 1)
    print((time.process_time_ns() - began) / 1e6)
"""
_FINDERS = {
    "java": "purebpf.observe.runtimes.hotspot.java_process:find_java",
    "node": "purebpf.observe.runtimes.v8.v8_process:find_v8",
    "ruby": "purebpf.observe.runtimes.ruby.ruby_process:find_ruby",
    "php": "purebpf.observe.runtimes.php.php_process:find_php",
    "python": "purebpf.observe.runtimes.cpython.python_process:find_python",
}


def bench_setup(folder: Path, options: argparse.Namespace) -> int:
    """Print the CPU time until a process can be published to BPF."""
    print(f"{'program':36} first of a file, with modules   next one")
    for name, command in depths(folder):
        if options.names and not any(each in name for each in options.names):
            continue
        deep = [*command, "10"]
        with started(deep) as first, started(deep) as second:
            rounds = []
            for _ in range(5):
                language = name.partition(" ")[0]
                arguments = (str(ROOT), _FINDERS[language], str(first), str(second))
                line = [sys.executable, "-c", _SETUP, *arguments]
                text = subprocess.run(line, capture_output=True, text=True, check=True).stdout
                rounds.append(tuple(map(float, text.split())))
        one, two = (min(each) for each in zip(*rounds, strict=True))
        print(f"{name:36} {one:8.1f} ms {two:8.1f} ms", flush=True)
    return 0


_IDLE = """
public class Idle {
    static int work(int n) {
        int sum = 0;
        for (int i = 0; i < 300000; i++) sum += i ^ n;
        return sum;
    }
    public static void main(String[] arguments) throws Exception {
        System.out.println("ready");
        for (int n = 0; ; n++) { work(n); Thread.sleep(20); }
    }
}
"""


def bench_many(folder: Path, options: argparse.Namespace) -> int:
    """Print what many JVMs add to a profile of the whole machine."""
    del options
    (home,) = jvms.default()
    _compiled(folder, "Idle", _IDLE)
    line = [home / "bin/java", "-Xmx16m", "-XX:+UseSerialGC", "-cp", folder, "Idle"]

    def cost(wanted: set[int]) -> tuple[float, int]:
        """CPU seconds of a profile, and how many of some processes have Java frames in it."""
        out = folder / "many.json"
        command = [sys.executable, "-m", "purebpf", "profile", "-F", "99", "-o", out, "15"]
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        data = json.loads(out.read_text())
        java = {at for at, frame in enumerate(data["frames"]) if frame.get("name") == "Idle.main"}
        seen = {stack["pid"] for stack in data["stacks"] if java & set(stack["user"])}
        return used.ru_utime + used.ru_stime, len(seen & wanted)

    without, _ = cost(set())
    running = [subprocess.Popen(line, stdout=subprocess.DEVNULL) for _ in range(_JVMS)]
    try:
        time.sleep(30)
        both, seen = cost({process.pid for process in running})
    finally:
        for process in running:
            process.kill()
            process.wait()
    each = 1000 * (both - without) / _JVMS
    print(f"{_JVMS} JVMs: {seen} of them with Java frames; {each:.1f} ms of CPU time each")
    return 0


BENCHES = {"stacks": bench_stacks, "setup": bench_setup, "many": bench_many}


def main() -> int:
    """Run the chosen benches."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--only", default=",".join(BENCHES))
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only.split(","):
            wrong += BENCHES[name](Path(folder), options)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"load average {load}; Linux {os.uname().release}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
