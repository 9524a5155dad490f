"""Interpreters whose memory is spoiled, for `mutate.py`: CPython, PHP, Ruby, HotSpot and V8.

A program of each language is stopped in the middle of its work. Each execution reads it as
`purebpf dump` does, with some words of its memory exchanged.
"""

from __future__ import annotations

import atexit
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from unittest import mock

from purebpf.errors import NotSupportedError
from purebpf.measure.targets import PidNamespace
from purebpf.observe.instruments.thread_registers import ThreadNow, ThreadRegisters
from purebpf.observe.runtimes.cpython.asyncio_file import find_task_layout
from purebpf.observe.runtimes.cpython.python_process import PythonProcess, find_python
from purebpf.runtimes.cpython.code_objects import CodeObjects
from purebpf.runtimes.cpython.debug_offsets import HEADER_SIZE, read_debug_offsets
from purebpf.runtimes.cpython.frames import read_frames
from purebpf.runtimes.cpython.task_layout import TaskLayout
from purebpf.runtimes.cpython.tasks import Task, read_tasks
from purebpf.runtimes.cpython.threads import read_interpreters
from purebpf.runtimes.memory import CachedMemory, ReadAt
from purebpf.syscall.process_memory import ProcessMemory
from purebpf.tools.dump import session
from purebpf.tools.dump.model import ProcessDump
from purebpf.tools.dump.render import document, lines

__all__ = ["PROGRAMS", "changed_seed", "run_dump", "run_python", "seeds"]

_NUMBERS = (0, 1, 2, 3, 7, 8, 16, 64, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1)
_RATES = (0.001, 0.01, 0.05, 0.3, 1.0)
"""The share of reads that are spoiled: most readers give up at the first object that lies."""

_PYTHON = """
import asyncio, os, signal
async def inner(): await asyncio.sleep(99)
async def outer(): await asyncio.gather(inner(), inner(), asyncio.create_task(inner()))
class Deep:
    def down(self, n):
        return self.down(n - 1) if n else asyncio.run(main())
async def main():
    tasks = [asyncio.create_task(outer(), name="größe") for _ in range(3)]
    await asyncio.sleep(0.01)
    print("ready", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
Deep().down(20)
"""
_RUBY = """
class Deep
  define_method(:down) { |left| left > 0 ? [left].map { |x| down(x - 1) } : stay }
  def stay = (puts "ready"; $stdout.flush; $stdin.gets)
end
Thread.new { Deep.new.instance_eval { sleep } }
Fiber.new { eval("Deep.new.down(20)", nil, "größe.rb", 7) }.resume
"""
_PHP = """<?php
namespace Größe;
class Deep {
  function __call($name, $given) { return $this->down($given[0]); }
  function down(int $left) {
    if (!$left) { echo "ready\\n"; return fgets(STDIN); }
    foreach ($this->inner($left) as $value) return $value;
  }
  function inner($left) { yield from $this->most($left); }
  function most($left) { yield array_map(fn($x) => $this->other($x - 1), [$left])[0]; }
}
eval('(new \\Größe\\Deep)->down(20);');
"""
_JAVA = """
import java.util.HashMap;

public class Deep {
    static int down(int left) throws Exception {
        if (left > 0) return new HashMap<Integer, Integer>().computeIfAbsent(left, Deep::call);
        if (!isReady) return 1;
        System.out.println("ready");
        return System.in.read();
    }
    static Integer call(int left) {
        try { return down(left - 1); } catch (Exception error) { throw new Error(error); }
    }
    static volatile boolean isReady;
    public static void main(String[] arguments) throws Exception {
        for (int turn = 0; turn < 30000; turn++) down(turn % 10);
        isReady = true;
        down(30);
    }
}
"""
_NODE = """
const fs = require('fs');
let isReady = false;
class Deep {
  down(left) { return left ? [left].map((größe) => this.down(größe - 1))[0] : stay(); }
}
function stay() {
  if (!isReady) return 1;
  fs.writeSync(1, 'ready\\n');
  return fs.readSync(0, Buffer.alloc(1));
}
const deep = new Deep();
for (let turn = 0; turn < 30000; turn++) deep.down(turn % 10);
isReady = true;
deep.down(30);
"""
PROGRAMS = {
    "ruby": ("deep.rb", _RUBY, ("ruby", "{file}"), "Deep"),
    "php": ("deep.php", _PHP, ("php", "{file}"), "Größe\\Deep::down"),
    "java": ("Deep.java", _JAVA, ("java", "-Xmx32m", "{file}"), "Deep.down"),
    "node": ("deep.js", _NODE, ("node", "{file}"), "down"),
}
"""The file, the program, the command, and a name in its stack, by the name of a target."""


def seeds() -> Iterator[bytes]:
    """Yield a number, of which the changes follow."""
    yield bytes(8)


def changed_seed(_: bytes, chance: random.Random) -> bytes:
    """Return another number."""
    return chance.randbytes(8)


def spoiled(read: ReadAt, seed: int) -> ReadAt:
    """Return a reader of memory of which some words are others, the same each time."""
    rate = _RATES[seed % len(_RATES)]

    def read_spoiled(address: int, size: int) -> bytes:
        chance = random.Random(seed ^ address)
        raw = bytearray(read(address, size))
        if chance.random() < rate and len(raw) >= 16:
            for _ in range(chance.choice((1, 2, 16))):
                at = 8 * chance.randrange(len(raw) // 8)
                other = 8 * chance.randrange(len(raw) // 8)
                numbers = (*_NUMBERS, chance.getrandbits(32), chance.getrandbits(64))
                word = chance.choice((address + at, *numbers)) & (1 << 64) - 1
                raw[at : at + 8] = chance.choice(
                    (raw[other : other + 8], word.to_bytes(8, "little"))
                )
        return bytes(raw)

    return read_spoiled


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    """Start a program, and wait until it is ready; it ends with this process."""
    # this process's own limit is too little for what a JVM reserves
    lifted = ["prlimit", "--as=unlimited", *command]
    child = subprocess.Popen(lifted, stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    atexit.register(child.wait)
    atexit.register(child.kill)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    return child


@cache
def _stopped_python() -> tuple[PythonProcess, TaskLayout]:
    """Return a Python with frames and tasks, which is stopped."""
    child = _start([sys.executable, "-c", _PYTHON])
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    python = find_python(child.pid)
    assert python is not None
    layout = find_task_layout(child.pid, python)
    assert layout is not None
    tasks = _look(python, layout, CachedMemory(python.read))
    assert sum(task.name == "größe" for task in tasks) == 3, tasks
    return python, layout


def _look(python: PythonProcess, layout: TaskLayout, memory: CachedMemory) -> list[Task]:
    """Read everything that `dump --async` reads."""
    codes = CodeObjects(python.version, python.layout, memory)
    interpreters = read_interpreters(python.layout, memory, python.runtime)
    for interpreter in interpreters:
        for thread in interpreter.threads:
            read_frames(python.version, python.layout, memory, codes, thread.address)
    return read_tasks(python.version, (python.layout, layout), memory, codes, interpreters)


def run_python(data: bytes) -> None:
    """Read the tasks of a CPython whose memory is spoiled."""
    python, layout = _stopped_python()
    read = spoiled(python.read, int.from_bytes(data[:8], "little"))
    for task in _look(python, layout, CachedMemory(read, 1 << 14)):
        task.name.encode("utf-8", "surrogatepass")
    read_debug_offsets(read(python.runtime, HEADER_SIZE))


class _Stopped:
    """A program that is stopped: its registers stay, so BPF reads them once.

    Args:
        language: of `PROGRAMS`.
    """

    def __init__(self, language: str) -> None:
        name, source, command, wanted = PROGRAMS[language]
        if not shutil.which(command[0]):
            raise SystemExit(f"{command[0]} is not installed")
        folder = Path(tempfile.mkdtemp(prefix="purebpf-fuzz-"))
        atexit.register(shutil.rmtree, folder)
        (folder / name).write_text(source)
        self.pid = _start([word.format(file=folder / name) for word in command]).pid
        time.sleep(0.5)
        os.kill(self.pid, signal.SIGSTOP)
        with ThreadRegisters(self.pid, PidNamespace.own()) as threads:
            self.registers = threads.list()
        names = {frame.name for thread in self.dump().threads for frame in thread.frames}
        assert any(wanted in each for each in names), names

    def dump(self, read: Callable[[ProcessMemory, int, int], bytes] | None = None) -> ProcessDump:
        """Dump the program; `read` reads its memory."""
        threads = mock.MagicMock()
        threads.return_value.__enter__.return_value.list = self._list
        change = mock.patch.object(ProcessMemory, "read", read or ProcessMemory.read)
        with change, mock.patch.object(session, "ThreadRegisters", threads):
            return session.dump(self.pid, kernel=False)

    def _list(self) -> dict[int, ThreadNow]:
        return self.registers


@cache
def _stopped(language: str) -> _Stopped:
    return _Stopped(language)


def run_dump(language: str, data: bytes) -> None:
    """Dump a program whose memory is spoiled: a result, without control characters."""
    program = _stopped(language)
    true_read, seed = ProcessMemory.read, int.from_bytes(data[:8], "little")

    def read(memory: ProcessMemory, address: int, size: int) -> bytes:
        return spoiled(lambda at, count: true_read(memory, at, count), seed)(address, size)

    try:
        dumped = program.dump(read)
    except NotSupportedError:
        return
    assert dumped.threads
    document(dumped)
    for line in lines(dumped):
        assert all(each.isprintable() or each == "\n" for each in line), repr(line)
