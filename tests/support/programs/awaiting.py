"""A Python program in which tasks of asyncio know which tasks await them, and compute."""

from __future__ import annotations

__all__ = ["AWAITING"]

AWAITING = """
import asyncio, contextvars, json, sys, threading, time, types
from contextlib import contextmanager

chain = contextvars.ContextVar("chain")  # a new task has a copy of what its creator has
chains = set()

@contextmanager
def at(*names):
    before = chain.get()
    chain.set(before + names)
    try:
        yield
    finally:
        chain.set(before)

def spin(*instead):
    chains.add(";".join((*(instead or chain.get()), "spin", "marked")))
    marked()

def marked():
    until = time.thread_time() + 0.002
    while time.thread_time() < until:
        for _ in range(300):
            pass

def sync_function():
    with at("sync_function"):
        spin()

async def computes():
    with at("computes"):
        spin()
        await asyncio.sleep(0)
        sync_function()

async def task():  # the outermost coroutine of a task
    with at("[task]", "task"):
        await computes()

async def gathers():
    with at("gathers"):
        await asyncio.gather(task(), task())

async def gathers_gathered():
    with at("gathers_gathered"):
        await asyncio.gather(asyncio.gather(task(), task()), asyncio.gather(task()))

async def in_group():
    with at("[task]", "in_group"):
        await gathers()

async def groups():
    with at("groups"):
        async with asyncio.TaskGroup() as group:
            group.create_task(in_group())
            group.create_task(task())

async def groups_and_awaits():
    with at("groups_and_awaits"):
        async with asyncio.TaskGroup() as group:
            await group.create_task(task())  # a set, of one task

async def nests(depth):
    with at("nests"):
        if depth:
            await nests(depth - 1)
        else:
            await asyncio.create_task(task())

async def shields():
    with at("shields"):
        await asyncio.shield(task())

async def has_timeout():
    with at("has_timeout"):
        async with asyncio.timeout(100):
            await asyncio.create_task(task())

async def waits_for():
    with at("waits_for"):
        await asyncio.wait_for(asyncio.create_task(task()), 100)

async def waits():
    with at("waits"):
        await asyncio.wait([asyncio.create_task(task())])

async def is_eager(before):
    spin(*before, "is_eager")  # called, not awaited
    await asyncio.sleep(0)
    with at("[task]", "is_eager"):
        spin()

async def starts_eagerly():
    with at("starts_eagerly"):
        loop = asyncio.get_running_loop()
        await asyncio.Task(is_eager(chain.get()), loop=loop, eager_start=True)

async def generator():
    yield 1
    with at("generator"):
        await asyncio.create_task(task())
    yield 2

async def uses_generator():
    with at("uses_generator"):
        async for _ in generator():
            pass

class Awaitable:
    def __await__(self):
        return self.run().__await__()

    async def run(self):
        with at("Awaitable.run"):
            await asyncio.create_task(task())

async def awaits_object():
    with at("awaits_object"):
        await Awaitable()

@types.coroutine
def old_style():
    with at("old_style"):
        yield from asyncio.create_task(task())

async def awaits_old_style():
    with at("awaits_old_style"):
        await old_style()

async def chained(depth):
    with at("[task]", "chained"):
        if depth:
            await asyncio.create_task(chained(depth - 1))
        else:
            await computes()

async def deep():
    with at("deep"):
        await asyncio.create_task(chained(11))

async def shared():
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    spin("[several awaiters]", "shared")

async def awaits(task):
    await task

async def shares():
    common = asyncio.create_task(shared())
    await asyncio.gather(awaits(common), awaits(common))

async def alone(done):
    spin("alone")
    done.set()

async def nobody_awaits():
    done = asyncio.Event()
    kept = asyncio.create_task(alone(done))
    await done.wait()

async def is_left():
    spin("is_left")

async def calls_and_ends():
    asyncio.gather(is_left(), is_left())

async def leaves():
    await asyncio.create_task(calls_and_ends())
    for _ in range(3):
        await asyncio.sleep(0)

class Derived(asyncio.Task):
    pass

async def derives():
    with at("derives"):
        await Derived(task(), loop=asyncio.get_running_loop())

kinds = [gathers, gathers_gathered, groups, groups_and_awaits, lambda: nests(4), shields,
         has_timeout, waits_for, waits, starts_eagerly, uses_generator, awaits_object,
         awaits_old_style, deep, shares, nobody_awaits, leaves, derives]

async def main():
    chain.set(("main",))
    while True:
        for kind in kinds:
            await kind()

for _ in range(2):
    threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
time.sleep(1)
print(flush=True)
sys.stdin.readline()
print(json.dumps(sorted(chains)), flush=True)
"""
"""Prints an empty line when it works, and its chains when it is asked: its functions, and marks."""
