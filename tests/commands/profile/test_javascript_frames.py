"""`purebpf profile` names the JavaScript functions of samples, without a flag for node.

The stacks that the program can have are few, and each function calls others on one line.
"""

from __future__ import annotations

import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest

from purebpf.results.model.profile import Row
from purebpf.symbols.frame import Frame
from purebpf.tools.profile import ProfileOptions, Profiler
from tests.support.programs import nodes
from tests.support.programs.recorded_calls import Verdicts, find_records, recorded, write_out

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "x86_64"),
    pytest.mark.skipif(not nodes.every(), reason="there is no node"),
]
PROGRAM = """
function leaf(n) {
  let found = n | 0;
  for (let at = 0; at < 3000; at++) found = (Math.imul(found, 1103515245) + (found >>> 7)) | 0;
  return found;
}
function viaSort(n) {
  return [3, 1].sort(function compare(a, b) { leaf(n); return a - b; })[0]; // viaSort compare
}
function viaMap(n) {
  return [n, n + 1].map(function each(x) { return leaf(x); })[0]; // viaMap each
}
class Desk {
  work(n) { return viaSort(n) + viaMap(n); } // work
}
const desk = new Desk();
function turn(n) { return desk.work(n) + 1; } // turn
function main() {
  const until = Date.now() + 50;
  let n = 0;
  while (Date.now() < until) turn(n++); // main
  setImmediate(main);
}
setImmediate(main);
console.log('ready');
"""
LINES = {
    name: at
    for at, text in enumerate(PROGRAM.splitlines(), 1)
    for name in text.partition("// ")[2].split()
}
CALLERS = {
    "leaf": {"compare", "each"},
    "compare": {"viaSort"},
    "each": {"viaMap"},
    "viaSort": {"work"},
    "viaMap": {"work"},
    "work": {"turn"},
    "turn": {"main"},
}


def own(row: Row, file: str) -> list[tuple[str, int]]:
    """The program's own functions in a stack, innermost first, with their lines."""
    frames = [frame for frame in row.user or () if isinstance(frame, Frame)]
    return [(each.name, each.line) for each in frames if each.module == file]


def check(stack: list[tuple[str, int]]) -> None:
    """Each function's caller is one that it has in the source, on its line."""
    assert stack[-1][0] == "main", stack
    for callee, caller in pairwise(stack):
        assert caller[0] in CALLERS[callee[0]], stack
        assert caller[1] == LINES[caller[0]], stack


@pytest.mark.parametrize("node", nodes.params())
def test_stacks_are_whole_and_possible(node: Path, tmp_path: Path) -> None:
    path = tmp_path / "busy.js"
    path.write_text(PROGRAM)
    count = 0
    with subprocess.Popen([node, path], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.5)
            for _ in range(5):
                options = ProfileOptions(
                    pids=(process.pid,), frequency=499, duration_s=3, python_lines=True
                )
                with Profiler(options) as profiler:
                    profiler.wait()
                    profile = profiler.stop()
                rows = [row for row in profile.rows() if own(row, str(path))]
                for row in rows:
                    check(own(row, str(path)))
                count += sum(row.weight for row in rows if own(row, str(path))[0][0] == "leaf")
                if count >= 50:
                    break
        finally:
            process.kill()
    assert count >= 50
    assert profile.about["v8_frames"] > 5 * profile.about["v8_stacks"]
    assert profile.about["v8_cut"] == 0
    assert not any("node" in hint for hint in profile.hints)


RECORDED = Path(__file__).parents[2] / "data/javascript/recorded.js"
SAMPLES, PATIENCE_S = 1000, 120


@pytest.mark.nightly
@pytest.mark.needs("clang", "atomic_fetch")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("node", nodes.params())
def test_stacks_equal_the_record_of_the_program(node: Path, workers: int, tmp_path: Path) -> None:
    """Callers and their lines, in the first thread and in worker threads, in mixed tiers."""
    path = tmp_path / "recorded.js"
    text, functions = write_out(RECORDED.read_text())
    path.write_text(text)
    verdicts = Verdicts(
        lambda frame: frame.name if frame.module == str(path) and frame.name in functions else ""
    )
    command = [node, path, str(workers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(2)
            records = find_records(process.pid)
            assert len(records) == workers + 1
            if workers:
                del records[process.pid]
            with recorded(process.pid, records, functions) as samples:
                samples.settle(30)
                until = time.monotonic() + PATIENCE_S
                while verdicts.total < SAMPLES and time.monotonic() < until:
                    for sample in samples.take(2):
                        verdicts.add(sample)
        finally:
            process.kill()
    print(f"{node}, {workers} workers: {dict(verdicts.counts)}, {verdicts.lines} lines")
    assert verdicts.total >= SAMPLES
    assert not verdicts.share("wrong"), verdicts.problems
    assert verdicts.share("cut") <= 0.005, verdicts.problems
