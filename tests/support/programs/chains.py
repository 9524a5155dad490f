"""A Python program in which each thread writes down its own chain of calls, then sleeps."""

from __future__ import annotations

__all__ = ["CHAINS"]

CHAINS = """
import asyncio, ctypes, functools, json, re, sys, threading, time

chains = {}

def stay(kind):
    chain, frame = [], sys._getframe()
    qualified = hasattr(frame.f_code, "co_qualname")
    while frame:
        code = frame.f_code
        name = code.co_qualname if qualified else code.co_name
        chain.append([name, code.co_filename, frame.f_lineno])
        frame = frame.f_back
    chains[threading.get_native_id()] = kind, chain
    time.sleep(1000)

class Handler:
    def get(self, depth):
        return self.get(depth - 1) if depth else stay("recursion")

    @property
    def value(self):
        return (lambda: stay("property"))()

    def __lt__(self, other):
        stay("comparison")

def generator(depth):
    if depth:
        yield from generator(depth - 1)
    else:
        yield stay("generator")

async def coroutine(depth):
    if depth:
        await coroutine(depth - 1)
    else:
        stay("coroutine")

def größe_名前():
    stay("names")

def excepts():
    try:
        raise ValueError
    except ValueError:
        stay("exception")

callback = ctypes.CFUNCTYPE(None)(lambda: stay("ctypes"))
kinds = [
    lambda: Handler().get(10),
    lambda: Handler().get(700),
    lambda: Handler().value,
    lambda: sorted([Handler(), Handler()]),
    lambda: sorted([1, 2], key=lambda _: stay("key")),
    lambda: re.sub("a", lambda match: stay("re.sub"), "a"),
    lambda: list(generator(5)),
    lambda: [x for x in generator(0)],
    lambda: asyncio.run(coroutine(5)),
    lambda: größe_名前(),
    lambda: excepts(),
    lambda: callback(),
    lambda: exec(compile("\\n\\nstay('exec')", "<made>", "exec"), globals()),
    lambda: functools.reduce(lambda a, b: stay("reduce"), [1, 2]),
    lambda: type("Made", (), {"__init__": lambda self: stay("init")})(),
]
threads = [threading.Thread(target=kind, daemon=True) for kind in kinds]
for thread in threads:
    thread.start()
while len(chains) < len(kinds):
    time.sleep(0.01)
time.sleep(0.2)
print(json.dumps(chains), flush=True)
time.sleep(1000)
"""
"""Prints {thread: [kind, [[name, file, line], ...]]}, innermost first."""
