"""Programs that write down their own chain of calls, and then take it for ever."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

__all__ = ["PYTHON_CHAIN", "OwnChain", "c_chain", "python_chain"]

_C = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *names[64];
static int depth, is_written;
static volatile unsigned long turns;

#define FUNCTION __attribute__((noipa))
#define ENTER names[depth++] = __func__
#define LEAVE depth--

FUNCTION long spin(long n)
{
    ENTER;
    if (!is_written) {
        for (int at = depth - 1; at >= 0; at--)
            printf("%s ", names[at]);
        printf("\\n");
        fflush(stdout);
        is_written = 1;
    }
    for (unsigned long i = 0; i < 2000000; i++)
        turns += i;
    n += getppid();
    LEAVE;
    return n;
}

FUNCTION long recurse(long n, volatile long *left)
{
    volatile char room[40 + 24 * (n & 3)];
    long result;
    ENTER;
    room[n] = 1;
    result = n ? recurse(n - 1, left) + *left : spin(n) + room[0];
    LEAVE;
    return result;
}

FUNCTION int compare(const void *left, const void *right)
{
    volatile long one = *(const int *)left - *(const int *)right;
    ENTER;
    one += recurse(5, &one) & 1;
    LEAVE;
    return one;
}

int main(void)
{
    ENTER;
    for (;;) {
        int values[2] = {2, 1};
        qsort(values, 2, sizeof(values[0]), compare);
    }
}
"""

PYTHON_CHAIN = """
import functools, json, os, sys, time

def write(frame):
    chain = []
    while frame:
        chain.append([frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    print(json.dumps(chain), flush=True)

def ask(depth):
    if depth:
        return ask(depth - 1)
    frame = sys._getframe()
    while True:
        write(frame) if not written else os.getppid(); wait()

def wait():
    written.append(1)
    time.sleep(0.003)

def compare(left, right):
    return ask(3)

written = []
sorted([2, 1], key=functools.cmp_to_key(compare))
"""


class OwnChain(NamedTuple):
    """A running program, and its chain of calls, the innermost first."""

    pid: int
    path: str
    chain: list[tuple[str, str, int]]


@contextmanager
def c_chain(directory: Path, *flags: str) -> Iterator[OwnChain]:
    """A program of gcc without frame pointers; files and lines are empty."""
    source, program = directory / "chain.c", directory / "chain"
    source.write_text(_C)
    built = ("gcc", "-O2", "-fomit-frame-pointer", *flags, "-o", program, source)
    subprocess.run(built, check=True)
    with _running(str(program)) as (pid, line):
        yield OwnChain(pid, str(program), [(name, "", 0) for name in line.split()])


@contextmanager
def python_chain(directory: Path, python: str = sys.executable) -> Iterator[OwnChain]:
    """A program of Python's."""
    source = directory / "chain.py"
    source.write_text(PYTHON_CHAIN)
    with _running(python, str(source)) as (pid, line):
        chain = [(name, file, number) for name, file, number in json.loads(line)]
        yield OwnChain(pid, str(source), chain)


@contextmanager
def _running(*command: str) -> Iterator[tuple[int, str]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.pid, process.stdout.readline()
        finally:
            process.kill()
