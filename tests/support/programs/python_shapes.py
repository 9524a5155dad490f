"""Programs that run Python in the shapes that services have, and write down their own chains.

Each process of a program runs `work()` from its own place, and keeps a file `chains-PID` of the
chains of calls that it has seen in `spin`, which calls the function `marked`.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["EMBEDDED", "SHAPES", "WORK", "read_chains"]

WORK = r"""
import functools, json, os, re, sys, threading, time

FOLDER = os.environ["CHAINS"]
chains = set()

def spin():
    frame, chain = sys._getframe(), []
    while frame:
        code = frame.f_code
        chain.append(getattr(code, "co_qualname", code.co_name))
        frame = frame.f_back
    text = globals().get("CALLERS", "") + ";".join(reversed(chain))
    if text not in chains:  # of other threads, too: so it is written down before it is known
        with open(os.path.join(FOLDER, "chains-%d" % os.getpid()), "a") as file:
            file.write(text + "\n")
        chains.add(text)
    marked()

def marked():
    until = time.thread_time() + 0.002
    while time.thread_time() < until:
        for _ in range(300):
            pass

class Handler:
    def get(self, depth):
        return self.get(depth - 1) if depth else spin()

    def __lt__(self, other):
        spin()

def generator(depth):
    if depth:
        yield from generator(depth - 1)
    else:
        yield spin()

def coroutine_runs():
    async def coroutine(depth):
        if depth:
            await coroutine(depth - 1)
        else:
            spin()
    try:
        coroutine(5).send(None)
    except StopIteration:
        pass

def excepts():
    try:
        raise ValueError
    except ValueError:
        try:
            raise KeyError
        finally:
            spin()

def unwinds():
    try:
        excepts()
    except KeyError:
        spin()

def managed():
    class Manager:
        def __enter__(self):
            spin()
        def __exit__(self, *_):
            spin()
    with Manager():
        pass

KINDS = [
    lambda: Handler().get(10),
    lambda: Handler().get(60),
    lambda: sorted([Handler(), Handler()]),
    lambda: sorted([1, 2], key=lambda _: spin() or 1),
    lambda: re.sub("a", lambda match: spin() or "", "a"),
    lambda: list(generator(5)),
    coroutine_runs,
    unwinds,
    managed,
    lambda: exec(compile("spin()", "<made>", "exec"), globals()),
    lambda: functools.reduce(lambda a, b: spin(), [1, 2]),
]
try:
    import ctypes
    callback = ctypes.CFUNCTYPE(None)(lambda: spin())
    KINDS.append(lambda: callback())
except Exception:  # a subinterpreter may not have ctypes
    pass

def work():
    while True:
        for kind in KINDS:
            kind()
"""

_ENDS = "sys.stdin.readline()\nos._exit(0)\n"

SHAPES = {
    "prefork": f"""{WORK}
def master():
    for _ in range(3):
        if not os.fork():
            serve()
def serve():
    work()
master()
{_ENDS}""",
    "forkserver": f"""{WORK}
import multiprocessing
if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    for _ in range(2):
        context.Process(target=work, daemon=True).start()
    sys.stdin.readline()
""",
    "pool": f"""{WORK}
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(8)
for _ in range(8):
    pool.submit(work)
{_ENDS}""",
    "threads": f"""{WORK}
for _ in range(200):
    threading.Thread(target=work, daemon=True).start()
{_ENDS}""",
    "subinterpreter": f"""
import os, sys, threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
PROGRAM = {WORK + "work()"!r}
def runs():
    number = interpreters.create()
    frame, callers = sys._getframe(), ""
    while frame:
        callers = getattr(frame.f_code, "co_qualname") + ";" + callers
        frame = frame.f_back
    program = "CALLERS = %r\\n" % callers + PROGRAM
    getattr(interpreters, "exec", interpreters.run_string)(number, program)
for _ in range(2):
    threading.Thread(target=runs, daemon=True).start()
{_ENDS}""",
}
"""Programs that read a line from standard input, and end."""


def read_chains(folder: Path) -> set[str]:
    """What all processes wrote down."""
    return {line for path in folder.glob("chains-*") for line in path.read_text().splitlines()}


EMBEDDED = """
#include <Python.h>
int main(int argc, char **argv)
{
	Py_Initialize();
	return PyRun_SimpleFile(fopen(argv[1], "r"), argv[1]);
}
"""
"""A program of another name that runs a file of Python."""
