"""Processes of another user that say they run Python: looking at them ends, and is paid for."""

from __future__ import annotations

import os
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import purebpf
from purebpf import objects
from purebpf.observe.runtimes.cpython.python_process import find_python
from purebpf.observe.runtimes.cpython.python_tables import PythonTables
from purebpf.runtimes.cpython.layouts import LAYOUTS
from purebpf.symbols.budget import USER, Allowance, Budget
from purebpf.wire.perf_records import Exit, Fork
from tests.support.builders.hollow_file import HollowFile, Part
from tests.support.host.faults import slow_host

pytestmark = pytest.mark.needs("bpf", "x86_64", "vmlinux_btf")

SYSTEM_PYTHON = "/usr/bin/python3"
NOBODY = 65534
system_python = pytest.mark.skipif(
    not Path(SYSTEM_PYTHON).exists(), reason="needs a Python that every user may run"
)
LAYOUT = LAYOUTS[3, 12]
SYMBOL = struct.Struct("<IBBHQQ")
LOW = 0x20_0000
"""Below the program: the first in /proc/PID/maps."""

PROGRAM = """
import ctypes, os, struct, sys
path, threads_at, thread_next, interpreters_at, interpreter_next, thread_id = sys.argv[1:7]
threads_at, thread_next, interpreters_at, interpreter_next, thread_id = map(
    int, (threads_at, thread_next, interpreters_at, interpreter_next, thread_id))
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
fd = os.open(path, os.O_RDONLY)
fixed, private, all_rights = 0x100000, 2, 7
at = libc.mmap(int(sys.argv[7]), 0x10000, all_rights, private | fixed, fd, 0x1000)
assert at == int(sys.argv[7]), at
COUNT, STRIDE, MANY = 1024, 1024, 65536
threads = ctypes.create_string_buffer(MANY * STRIDE)
first = ctypes.addressof(threads)
for number in range(MANY - 1):
    struct.pack_into("<Q", threads, number * STRIDE + thread_next, first + (number + 1) * STRIDE)
    struct.pack_into("<Q", threads, number * STRIDE + thread_id, first)
SIZE = 1 << 18
lists = ctypes.create_string_buffer(COUNT * SIZE)
begin = ctypes.addressof(lists)
for number in range(COUNT - 1):
    struct.pack_into("<Q", lists, number * SIZE + interpreter_next, begin + (number + 1) * SIZE)
    # each begins elsewhere: no list is as long as the one before, and all end alike
    struct.pack_into("<Q", lists, number * SIZE + threads_at, first + (COUNT - number) * STRIDE)
ctypes.c_uint64.from_address(at + 0x100 + interpreters_at).value = begin
print("ready", flush=True)
sys.stdin.read()
"""


def python_file(path: Path) -> None:
    """A file that has `_PyRuntime` 0x100 bytes into its second page, and an evaluation loop."""
    strings = b"\0_PyRuntime\0_PyEval_EvalFrameDefault\0"
    table = SYMBOL.pack(1, 0x11, 0, 1, 0x2100, 8) + SYMBOL.pack(12, 0x12, 0, 1, 0x3000, 64)
    HollowFile(
        Part(".symtab", table, kind=2, link=".strtab", entry_size=24),
        Part(".strtab", strings),
        Part(".text", offset=0x1000, size=0x10000, address=0x1000, flags=6),
    ).write(str(path))
    path.chmod(0o644)


@contextmanager
def fake_python(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process of another user; its memory has 1,024 interpreters that share 65,536 threads."""
    path = folder / "libpython3.12.so.1.0"
    python_file(path)
    folder.chmod(0o755)
    for above in folder.parents:
        if above.stat().st_uid == os.getuid() and above != Path("/tmp"):
            above.chmod(above.stat().st_mode | 0o011)
    words = [
        *(SYSTEM_PYTHON, "-c", PROGRAM, str(path)),
        *map(
            str,
            (
                *(LAYOUT.threads, LAYOUT.thread_next, LAYOUT.interpreters),
                *(LAYOUT.interpreter_next, LAYOUT.thread_id, LOW),
            ),
        ),
    ]
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
        env={},
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@system_python
def test_a_million_threads_are_not_looked_at(tmp_path: Path) -> None:
    with fake_python(tmp_path) as process:
        python = find_python(process.pid)
        assert python is not None
        with python:
            assert python.path.endswith("libpython3.12.so.1.0")
            began = time.thread_time()
            reading = python.look()
            assert time.thread_time() - began < 15 * (20 if slow_host() else 1)
        assert 0 < sum(len(shown.threads) for shown in reading.interpreters) <= 1 << 16


@contextmanager
def tables(places: int = 4, budget: Budget | None = None) -> Iterator[PythonTables]:
    """Those of the profiler, with places for so many processes."""
    spec = objects.spec("profile").resize(pythons=places)
    with (
        purebpf.load(spec) as loaded,
        PythonTables(loaded.maps, loaded.globals, budget=budget) as python,
    ):
        yield python


@contextmanager
def pythons(count: int) -> Iterator[list[int]]:
    """Processes that run Python, and have begun."""
    program = "import sys; print(flush=True); sys.stdin.read()"
    words = [SYSTEM_PYTHON, "-c", program]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(words, stdin=pipe, stdout=pipe) for _ in range(count)]
    try:
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def ended(pid: int) -> Exit:
    return Exit(pid, 0, pid, 0, 0)


@system_python
@pytest.mark.needs("atomic_fetch")
def test_more_pythons_than_places_end_no_profile() -> None:
    with pythons(6) as pids, tables() as python:
        python.interpreters.publish_running(pids)
        assert len(python.interpreters._table) == 4
        refused = [why for why in python.interpreters.skipped.values() if "run already" in why]
        assert len(refused) == 2


@system_python
@pytest.mark.needs("atomic_fetch")
def test_the_place_of_a_process_that_has_ended_is_free_again() -> None:
    with pythons(8) as pids, tables() as python:
        before: list[int] = []
        for _ in range(2):  # those that are known need no pause
            python.interpreters.publish_running(
                pids[:4], lambda: before.append(len(python.interpreters._table))
            )
        assert before == [0, 1, 2, 3]
        files = len(os.listdir("/proc/self/fd"))
        for pid in pids[:4]:
            python.interpreters.feed(ended(pid))
        python.drain()
        assert len(python.interpreters._table) == 0
        assert len(os.listdir("/proc/self/fd")) == files - 4  # of their memories
        python.interpreters.publish_running(pids[4:])
        assert len(python.interpreters._table) == 4
        assert not python.interpreters.skipped


@system_python
@pytest.mark.needs("atomic_fetch")
def test_a_number_that_is_used_again_keeps_its_new_place() -> None:
    with pythons(1) as (pid,), tables() as python:
        python.interpreters.publish_running([pid])
        python.interpreters.feed(ended(pid))
        python.interpreters.publish_running([pid])
        python.drain()
        assert len(python.interpreters._table) == 1


@system_python
@pytest.mark.needs("atomic_fetch")
def test_a_copy_of_before_execve_does_not_hide_the_program_after_it() -> None:
    """Copies come late: the mappings that are read are those of the later program already."""
    before, after = 5 << 10, 5 << 10 | 1
    with pythons(1) as (pid,), tables() as python:
        python.interpreters.publish(pid, pid, before)
        assert python.interpreters._table[pid].identity == before
        python.interpreters.publish(pid, pid, after)
        assert python.interpreters._table[pid].identity == after
        python.interpreters.publish(pid, pid, before)
        assert python.interpreters._table[pid].identity == after


@system_python
@pytest.mark.needs("atomic_fetch")
def test_a_child_has_the_interpreter_of_its_parent_until_it_executes_another_program() -> None:
    with pythons(2) as (parent, child), tables() as python:
        python.interpreters.publish(parent, parent, 5 << 10)
        python.interpreters.feed(Fork(child, parent, child, parent))
        python.drain()
        assert python.interpreters._table[child].identity == 0  # any
        assert python.interpreters._table[child].slot == python.interpreters._table[parent].slot
        python.interpreters.publish(child, child, 6 << 10 | 1)
        assert python.interpreters._table[child].identity == 6 << 10 | 1


@system_python
@pytest.mark.needs("atomic_fetch")
def test_a_user_pays_for_looks_into_what_is_theirs(tmp_path: Path) -> None:
    budget = Budget({USER: Allowance(1 << 40, 0.001)})
    with fake_python(tmp_path) as process, pythons(1) as (own,), tables(budget=budget) as python:
        for _ in range(2):
            python.interpreters.publish_running([process.pid])
        assert "used its 0.001 s" in python.interpreters.skipped[process.pid]
        python.interpreters.publish_running([own])
        assert own not in python.interpreters.skipped, "the first look of a user is free"
        assert python.interpreters.look_again_s() > 0
