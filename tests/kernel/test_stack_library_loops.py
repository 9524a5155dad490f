"""`purebpf.stacks` in loops of other people: asyncio, counts in maps, cgroups, tests, examples."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import purebpf
import purebpf.stacks
from purebpf.measure.targets import NoSuchTargetError
from tests.support.host import cgroups
from tests.support.programs.own_chains import c_chain

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf", "task_pt_regs", "atomic_fetch", "tracefs", "gcc"),
]

OBJECT = Path(__file__).parents[1] / "data/stacks_of_others.bpf.o"
EXAMPLES = Path(__file__).parents[2] / "examples/stacks"
PATIENCE_S = 300.0
"""Until a loop has had its turn: on a busy machine a slice of work takes seconds."""
EVENTS = 10


def test_records_on_an_event_loop(tmp_path: Path, stack_load) -> None:
    """Another task goes on, and the loop has no descriptor of ours at the end."""
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    async def read(traced: purebpf.stacks.StackObject) -> list[str]:
        other = asyncio.create_task(count_turns())
        ends = []
        records = traced.read_async("events", timeout=PATIENCE_S)
        async for event in records:
            ends.append(event.stack.frames[-1].function)
            if len(ends) >= EVENTS and turns > 1:
                break
        await records.aclose()
        other.cancel()
        return ends

    with c_chain(tmp_path) as target:
        spec = purebpf.read_object(OBJECT).set(target=target.pid).only("on_tracepoint")
        traced = stack_load(spec, pids=[target.pid])
        traced.attach()
        ends = asyncio.run(read(traced))
        assert len(ends) >= EVENTS
        assert set(ends) == {"_start"}
        assert turns > 1


def test_the_time_of_a_loop_that_gets_no_record(stack_load) -> None:
    spec = purebpf.read_object(OBJECT).set(target=os.getpid()).only("on_call")

    async def read(traced: purebpf.stacks.StackObject) -> int:
        return len([record async for record in traced.read_async("events", timeout=0.1)])

    assert asyncio.run(read(stack_load(spec, pids=[os.getpid()]))) == 0


def test_losses_begin_at_zero_once_the_walk_has_its_tables(tmp_path: Path, stack_load) -> None:
    with c_chain(tmp_path) as target:
        spec = purebpf.read_object(OBJECT).set(target=target.pid).only("on_tracepoint")
        traced = stack_load(spec)
        with traced.attach()[0]:
            assert not traced.settle(timeout=0.0)
            assert traced.settle(timeout=PATIENCE_S)
            traced.stop()
            events = traced.read("events", timeout=PATIENCE_S)
            next(event for event in events if event.stack == 1)  # the program ran on
        assert traced.losses()["early"]
        assert traced.settle(timeout=PATIENCE_S)
        assert not any(traced.losses().values())


@pytest.mark.needs("cgroup2")
def test_the_processes_of_a_cgroup(tmp_path: Path, stack_load) -> None:
    """No stack of them is copied or lost at the start."""
    with ExitStack() as owned:
        target = owned.enter_context(c_chain(tmp_path))
        cgroup = owned.enter_context(cgroups.made())
        owned.callback(lambda: (cgroup.parent / "cgroup.procs").write_text(str(target.pid)))
        (cgroup / "cgroup.procs").write_text(str(target.pid))
        spec = purebpf.read_object(OBJECT).set(target=target.pid).only("on_tracepoint")
        traced = stack_load(spec, cgroup=str(cgroup))
        with traced.attach()[0]:
            traced.wait(1.0)
        counts = dict(traced.maps["stacks"].items())
        chains = {tuple(each.function for each in traced.stack(number).frames) for number in counts}
        assert {chain[-1] for chain in chains} == {"_start"}
    with pytest.raises(NoSuchTargetError, match="does not exist"):
        purebpf.stacks.load(OBJECT, cgroup=str(tmp_path / "none"))


_QUERIES = r"""
import sqlite3, time
db = sqlite3.connect(":memory:")

def report(count):
    query = "with recursive t(i) as (select 1 union all select i+1 from t where i<?) " \
        "select max(i) from t"
    return db.execute(query, (count,)).fetchone()

def keep():
    return [bytearray(200_000) for _ in range(20)]

while True:
    report(50_000)
    keep()
    time.sleep(0.02)
"""


@pytest.mark.nightly
@pytest.mark.needs("clang", "x86_64")
@pytest.mark.parametrize(
    ("example", "expected"),
    [
        ("slow_queries.py", "report {}:8: return db.execute("),
        ("malloc_lines.py", "{}:11"),
    ],
)
def test_the_examples_name_lines_of_python(tmp_path: Path, example: str, expected: str) -> None:
    work = tmp_path / "work.py"
    work.write_text(_QUERIES)
    with subprocess.Popen(["/usr/bin/python3", work]) as running:
        command = [sys.executable, EXAMPLES / example, str(running.pid), "4"]
        printed = subprocess.run(command, capture_output=True, text=True, check=False)
        running.kill()
    assert expected.format(work) in printed.stdout, printed


@pytest.mark.parametrize(("example", "lines"), [("malloc_lines.py", 20), ("slow_queries.py", 30)])
def test_the_examples_are_short(example: str, lines: int) -> None:
    c = (EXAMPLES / example).read_text().split('"""')[3]
    assert len([line for line in c.splitlines() if line.strip()]) <= lines
