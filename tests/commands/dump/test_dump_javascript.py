"""`purebpf dump` shows the JavaScript frames that Error.stack has, in each kind of code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from purebpf.tools.dump import session
from purebpf.tools.dump.model import DumpedThread, ProcessDump
from purebpf.tools.dump.render import document, lines
from tests.support.programs import nodes

pytestmark = [
    pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf", "x86_64"),
    pytest.mark.skipif(not nodes.every(), reason="there is no node"),
]
NODES = nodes.params()
OPTIONS: list[tuple[str, ...]] = [()]
"""Of node; at night also only the interpreter, only baseline code, and without generated code."""
if os.environ.get("PUREBPF_NIGHTLY"):
    OPTIONS += [("--no-opt",), ("--always-sparkplug", "--no-opt"), ("--jitless",)]
    OPTIONS += [("--interpreted-frames-native-stack",), ("--max-lazy",)]
PROGRAM = r"""
'use strict';
const fs = require('fs');
const vm = require('vm');
Error.stackTraceLimit = Infinity;

function capture() {
  Error.prepareStackTrace = (_, sites) => sites.filter((site) => !site.isAsync());
  const sites = new Error().stack.slice(1);
  Error.prepareStackTrace = undefined;
  return sites.map((site) => [site.getFunctionName() || '<anonymous>',
    (site.getScriptNameOrSourceURL() || '').replace('file://', ''), site.getLineNumber() || 0]);
}

let warm = true;
function stay() {
  if (warm) return 1;
  fs.writeSync(1, JSON.stringify(capture()) + '\n'); fs.readSync(0, Buffer.alloc(1));
  return 1;
}

class Box {
  constructor(left) {
    this.left = left;
    this.value = descend(left);
  }
  get field() { return descend(this.left); }
  toJSON() { return descend(this.left); }
  static make(left) { return new Box(left).value; }
}
class Crate extends Box {
  constructor(left) { super(left); this.lid = true; }
}

function* steps(left) {
  yield descend(left);
}
const small = (left) => descend(left) + 1;
const script = '\n\n(function inScript(descend, left) { return descend(left); })';
const inContext = vm.runInThisContext(script, { filename: 'shifted.js', lineOffset: 40 });
const holder = { left: 0, set value(left) { descend(left); } };
holder.method = function (left) { return descend(left); };

function descend(left) {
  if (left <= 0) return stay();
  const below = left - 1;
  switch (left % 18) {
    case 0: return small(below);
    case 1: return [3, 1].sort((a, b) => { descend(below); return a - b; })[0];
    case 2: return [below].map(descend)[0];
    case 3: return Box.make(below);
    case 4: {
      let sum = 0;
      [below].forEach(function each(x) { sum += descend(x); });
      return sum;
    }
    case 5: return JSON.stringify({ a: new Proxy({ left: below }, {
      get(target, key) { return key === 'toJSON' ? undefined : descend(target.left); } }) }).length;
    case 6: return 'abc'.replace(/b/, () => String(descend(below))).length;
    case 7: return descend.bind(null)(below);
    case 8: return steps(below).next().value;
    case 9: return Reflect.apply(descend, null, [below]);
    case 10: return descend.call(null, below) + 1;
    case 11: return new Crate(below).value;
    case 12: return inContext(descend, below);
    case 13: holder.value = below; return 1;
    case 14: return holder.method(below);
    case 15: return Array.from({ length: 1 }, () => descend(below))[0];
    case 16: try { throw below; } catch (thrown) { return descend(thrown); }
    default: return [1, 2].reduce((sum, x) => sum + (x === 2 ? descend(below) : 0), 0);
  }
}

const [turns, depth] = process.argv.slice(2).map(Number);
for (let turn = 0; turn < turns; turn++) descend(turn % 20);
warm = false;
descend(depth);
"""
TIERS = [(0, 40), (100, 23), (3000, 47), (60_000, 70)]
"""Calls before the one that blocks, and its depth: in the interpreter, and in the tiers."""


@contextmanager
def started(node: Path, program: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A node that runs a program; it waits for its input."""
    command = [str(node), *arguments[:-2], str(program), *arguments[-2:]]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def settled(pid: int) -> ProcessDump:
    """A dump in which no thread was in motion."""
    for _ in range(20):
        dumped = session.dump(pid, kernel=False)
        if not any(thread.problems for thread in dumped.threads):
            return dumped
        time.sleep(0.2)
    raise AssertionError([thread for thread in dumped.threads if thread.problems])


def javascript(thread: DumpedThread) -> list[tuple[str, str, int]]:
    """The JavaScript frames of a thread."""
    return [
        (each.name, "" if each.file == "built-in" else each.file.replace("file://", ""), each.line)
        for each in thread.frames
        if each.kind == "javascript"
    ]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("javascript") / "blocked.js"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("options", OPTIONS)
def test_frames_and_lines_are_those_of_error_stack(
    node: Path, options: tuple[str, ...], program: Path
) -> None:
    lengths = []
    for turns, depth in TIERS:
        with started(node, program, *options, str(turns), str(depth)) as process:
            assert process.stdout is not None
            expected = [tuple(each) for each in json.loads(process.stdout.readline())]
            dumped = settled(process.pid)
        (main,) = [thread for thread in dumped.threads if thread.tid == dumped.pid]
        found = javascript(main)
        assert [each[0] for each in found[:2]] in (["read", "readSync"], ["readSync", "stay"])
        found = found[[each[0] for each in found].index("stay") :]
        assert found == expected
        lengths.append(len(found))
        assert re.fullmatch(r"\d+\.\d+", dumped.v8)
    assert min(lengths) > 40
    assert ("inScript", "shifted.js", 43) in expected


def test_worker_threads_have_frames_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "worker.js").write_text(
        "const { Worker, isMainThread } = require('worker_threads');\n"
        "function waitForever() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }\n"
        "if (!isMainThread) [1].forEach(() => waitForever());\n"
        "else { new Worker(__filename); new Worker(__filename);\n"
        "  console.log('ready');\n"
        "  setTimeout(() => require('fs').readSync(0, Buffer.alloc(1)), 500); }\n"
    )
    (node,) = nodes.default()
    command = [node, tmp_path / "worker.js"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(1.5)
        dumped = settled(process.pid)
        process.kill()
    stacks = [javascript(thread) for thread in dumped.threads]
    waiting = [stack for stack in stacks if stack[:1] == [("wait", "", 0)]]
    place = str(tmp_path / "worker.js")
    assert len(waiting) == 2
    for stack in waiting:
        assert stack[1:4] == [
            ("waitForever", place, 2),
            ("<anonymous>", place, 3),
            ("forEach", "", 0),
        ]
    (main,) = [stack for stack in stacks if any("readSync" in frame[0] for frame in stack)]
    assert ("<anonymous>", place, 6) in main


def test_native_frames_of_node_are_left_out(program: Path) -> None:
    (node,) = nodes.default()
    with started(node, program, "100", "5") as process:
        assert process.stdout is not None
        process.stdout.readline()
        dumped = settled(process.pid)
        whole = session.dump(process.pid, kernel=False, native=True)
    (main,) = [thread for thread in dumped.threads if thread.tid == dumped.pid]
    kinds = [frame.kind for frame in main.frames]
    assert kinds[0] == "user"
    assert kinds == sorted(kinds, reverse=True)  # "user", then "javascript"
    (main,) = [thread for thread in whole.threads if thread.tid == dumped.pid]
    assert {"EntryFrame", "_start"} <= {frame.name for frame in main.frames}
    text = "".join(lines(dumped))
    assert f"V8 {dumped.v8}\n" in text
    assert re.search(r"\n    stay \(.*blocked\.js:\d+\)\n", text)
    assert re.search(r"  1 thread   waits in stay \(blocked\.js:\d+\)", text)
    tree: dict[str, Any] = json.loads(document(dumped))
    assert tree["v8"] == dumped.v8


def test_a_program_called_node_is_no_v8(tmp_path: Path) -> None:
    """A program of that name without the constants has native frames, and a note."""
    node = tmp_path / "node"
    node.write_bytes(Path("/bin/sleep").read_bytes())
    node.chmod(0o755)
    with subprocess.Popen([node, "1000"]) as process:
        time.sleep(0.2)
        dumped = session.dump(process.pid, kernel=False)
        process.kill()
    assert any("does not describe its V8" in note for note in dumped.notes)
    assert dumped.v8 == ""
    assert dumped.threads[0].frames
