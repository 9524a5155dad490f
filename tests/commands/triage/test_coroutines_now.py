"""The tasks of asyncio in a live process, at several looks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from purebpf.findings.facts import Goroutines
from purebpf.tools.triage.task_watch import TaskWatch

pytestmark = pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf")

PROGRAM = """
import asyncio
async def pay(lock):
    async with lock:
        await asyncio.sleep(1000)
async def main():
    lock = asyncio.Lock()
    tasks = [asyncio.create_task(pay(lock)) for _ in range(3)]
    await asyncio.sleep(0.1)
    print("ready", flush=True)
    await asyncio.gather(*tasks)
asyncio.run(main())
"""


def looks(program: str) -> tuple[Goroutines, ...]:
    words = [sys.executable, "-c", program]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            with TaskWatch(lambda _: sys.executable) as watch:
                for _ in range(2):
                    watch.tick(lambda: [process.pid])
                return watch.finish()
        finally:
            process.kill()


def test_coroutines_that_wait_for_a_lock_and_their_holder() -> None:
    inside = {one.user[0].name: one for one in looks(PROGRAM)}
    waiting, holder = inside["Lock.acquire"], inside["sleep"]
    assert (waiting.counts, waiting.stuck) == ((2, 2), 2)
    assert (holder.counts, holder.stuck) == ((1, 1), 1)
    assert [frame.name for frame in holder.user] == ["sleep", "pay"]
    assert [frame.line for frame in holder.user if frame.name == "pay"] == [5]


def test_a_program_without_asyncio_has_no_coroutines() -> None:
    assert looks('import time; print("ready", flush=True); time.sleep(1000)') == ()
