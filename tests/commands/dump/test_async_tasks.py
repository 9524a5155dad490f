"""`dump --async` says of each task what the program says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from purebpf.runtimes.cpython import tasks
from purebpf.tools.dump import session
from purebpf.tools.dump.render import document, lines
from tests.support.environment import run
from tests.support.programs import pythons
from tests.support.programs.python_programs import running

pytestmark = pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf")
EVERY = [pytest.param(each, id=f"{each.version[1]}-{each.path}") for each in pythons.with_gil()]

PROGRAM = """
import asyncio, json, sys, types

class Pool:
    async def get(self):
        return await self.inner()

    async def inner(self):
        await asyncio.sleep(1000)

async def generator():
    yield 1
    await asyncio.sleep(1000)
    yield 2

async def uses_generator():
    async for _ in generator():
        pass

@types.coroutine
def old_style(event):
    yield from event.wait().__await__()

async def holds(lock):
    async with lock:
        for _ in range(2):
            await old_style(asyncio.Event())

async def waits_for(task):
    return await task

async def gathers(*tasks):
    await asyncio.gather(*tasks)

async def ends():
    pass

async def sees_all():
    await asyncio.sleep(0)
    await asyncio.sleep(0.2)
    look()
    await asyncio.Event().wait()

def chain(at):
    frames = []
    while True:
        for kind, what in (("cr", "await"), ("ag", "await"), ("gi", "yieldfrom")):
            if hasattr(at, kind + "_frame"):
                break
        else:
            return frames
        code, frame = getattr(at, kind + "_code"), getattr(at, kind + "_frame")
        name = getattr(code, "co_qualname", code.co_name)
        frames.insert(0, [name, code.co_filename, frame.f_lineno])
        nearest = getattr(at, kind + "_await" if what == "await" else "gi_yieldfrom")
        at = nearest

def look():
    tasks = {}
    for task in asyncio.all_tasks():
        if task is not asyncio.current_task():
            tasks[task.get_name()] = chain(task.get_coro())
    print(json.dumps(tasks), flush=True)

async def main():
    new = asyncio.ensure_future
    named = new(Pool().get())
    named.set_name("größe 名前")
    lock = asyncio.Lock()
    first = [new(holds(lock)), new(holds(lock)), new(waits_for(named))]
    await asyncio.sleep(0.1)
    tasks = [*first, new(gathers(named, new(Pool().get()))), new(ends()), new(sees_all())]
    await asyncio.wait(tasks)

asyncio.run(main())
"""


def tasks_of(pid: int) -> dict[str, Any]:
    tree = json.loads(document(session.dump(pid, kernel=False, tasks=True)))
    assert tree["notes"] == []
    return {task["name"]: task for task in tree["tasks"]}


@pytest.mark.parametrize("python", EVERY)
def test_every_task_has_the_chain_of_its_coroutines(python: pythons.Python, tmp_path: Path) -> None:
    with running(python.path, PROGRAM, tmp_path, is_json=True) as (pid, chains):
        dumped = tasks_of(pid)
    (sees_all,) = dumped.keys() - chains.keys()  # it looked, and now waits itself
    assert dumped.keys() == {*chains, sees_all}
    assert len(chains) == 7
    for name, chain in chains.items():
        frames = [[f["name"], f["file"], f["line"]] for f in dumped[name]["frames"]]
        assert frames[-len(chain) :] == chain
        assert dumped[name]["problems"] == []
        assert dumped[name]["state"] == "waits"
    named = dumped["größe 名前"]
    assert [frame["name"].rpartition(".")[2] for frame in named["frames"]] == [
        *("sleep", "inner", "get")
    ]
    (waits,) = (t for t in dumped.values() if t["frames"][-1]["name"] == "waits_for")
    (gathers,) = (t for t in dumped.values() if t["frames"][-1]["name"] == "gathers")
    assert waits["waits_for"] == ["größe 名前"]
    assert "größe 名前" in gathers["waits_for"]
    assert len(gathers["waits_for"]) == 2
    assert named["awaited_by"] == sorted([waits["name"], gathers["name"]])


def test_a_task_that_runs_has_its_frames_on_its_thread(tmp_path: Path) -> None:
    program = """
import asyncio
async def outer():
    await asyncio.sleep(0)
    await inner()
async def inner():
    print("ready", flush=True)
    while True:
        pass
asyncio.run(outer())
"""
    newest = pythons.newest()
    assert newest is not None
    with running(newest.path, program, tmp_path) as (pid, _):
        dumped = session.dump(pid, kernel=False, tasks=True)
    assert dumped.tasks is not None
    (task,) = dumped.tasks
    assert (task.state, task.frames, task.problems) == ("runs", (), ())
    names = [frame.name for frame in dumped.threads[0].frames]
    assert names[:2] == ["inner", "outer"]
    assert 'Task "Task-1": runs\n' in list(lines(dumped))


def test_only_the_tasks_that_change_while_they_are_read_say_so(tmp_path: Path) -> None:
    steps = "        await asyncio.sleep(0.001)\n" * 50
    program = f"""
import asyncio
async def waits():
    await asyncio.Event().wait()
async def changes():
    while True:
{steps}
async def main():
    print("ready", flush=True)
    async with asyncio.TaskGroup() as group:
        group.create_task(waits(), name="waits")
        group.create_task(changes(), name="changes")
asyncio.run(main())
"""
    newest = pythons.newest()
    assert newest is not None
    has_changed = False
    with running(newest.path, program, tmp_path) as (pid, _):
        for _ in range(10):
            dumped = session.dump(pid, kernel=False, tasks=True)
            assert dumped.notes == ()
            assert dumped.tasks is not None
            named = {task.name: task for task in dumped.tasks}
            assert named["waits"].problems == ()
            assert named["Task-1"].problems == ()
            has_changed = has_changed or named["changes"].problems == (
                "it changed while it was read: this may be of different moments",
            )
    assert has_changed


@pytest.mark.parametrize("python", EVERY)
def test_lists_that_are_torn_lose_no_task(
    python: pythons.Python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = tasks._Reader.addresses
    readings = 0

    def torn(reader: Any, interpreter: Any) -> Any:
        nonlocal readings
        readings += 1
        return listed(reader, interpreter) if readings == 1 else iter(())

    with running(python.path, PROGRAM, tmp_path, is_json=True) as (pid, chains):
        monkeypatch.setattr(tasks._Reader, "addresses", torn)
        dumped = tasks_of(pid)
    assert readings == 2
    assert dumped.keys() > chains.keys()
    assert all(task["problems"] == [] for task in dumped.values())


def test_what_has_no_tasks_says_so(tmp_path: Path) -> None:
    newest = pythons.newest()
    assert newest is not None
    program = "print('ready', flush=True)\nimport time\ntime.sleep(1000)\n"
    with running(newest.path, program, tmp_path) as (pid, _):
        result = run("dump", "--async", "-U", str(pid))
        plain = run("dump", "-U", "--json", str(pid))
    assert result.stdout.endswith("\nasyncio: 0 tasks\n")
    assert "tasks" not in json.loads(plain.stdout)
