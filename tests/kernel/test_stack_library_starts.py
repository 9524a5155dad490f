"""`purebpf.stacks` in processes that have just begun: their files have rules, they are unknown."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import purebpf
import purebpf.stacks
from purebpf.abi.bpf import bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.loader.features import features
from purebpf.stacks import StackObject
from tests.support.host.cgroups import inside, made

pytestmark = [
    pytest.mark.needs(
        "bpf", "vmlinux_btf", "task_pt_regs", "atomic_fetch", "x86_64", "gcc", "clang", "cgroup2"
    ),
]

LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
CALLS, PROCESSES = 300, 25
CHAIN = ["leaf", "level2", "level1", "main"]

PROGRAM = """
#include <unistd.h>

#define FUNCTION __attribute__((noipa))

FUNCTION long leaf(long n)
{
    volatile char room[ROOM];
    room[n & 7] = 1;
    for (int calls = 0; calls < CALLS; calls++)
        n += getppid();
    return n + room[0];
}

#define CALLER(name, callee, size)   \\
    FUNCTION long name(long n)       \\
    {                                \\
        volatile char room[size];    \\
        room[0] = 1;                 \\
        return callee(n) + room[0];  \\
    }
CALLER(level2, leaf, ROOM / 2)
CALLER(level1, level2, ROOM * 2)
int main(void) { return level1(1) == 0; }
"""

LIBRARY = """
#include <unistd.h>
#define FUNCTION __attribute__((noipa))
FUNCTION static long leaf(long n)
{
    volatile char room[200];
    room[n & 7] = 1;
    for (int calls = 0; calls < 40; calls++)
        n += getppid();
    return n + room[0];
}
FUNCTION long work(long n) { volatile char room[64]; room[0] = 1; return leaf(n) + room[0]; }
"""

MANY = """
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **paths)
{
    long (*work[500])(long), sum = 0;
    char byte;
    for (int at = 1; at < count; at++)
        work[at] = (long (*)(long))dlsym(dlopen(paths[at], RTLD_NOW), "work");
    puts("ready");
    fflush(stdout);
    if (read(0, &byte, 1) != 1)
        return 1;
    for (int at = 1; at < count; at++)
        sum += work[at](at);
    return sum == 0;
}
"""

C = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <purebpf/stacks.h>

const volatile __u64 group = 0;

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, purebpf_stack);
    __type(value, __u64);
} counts SEC(".maps");

SEC("uprobe") int on_call(void *ctx)
{
    purebpf_stack stack;
    __u64 *count, one = 1;

    if (bpf_get_current_cgroup_id() != group)
        return 0;
    stack = user_stack(ctx);
    count = bpf_map_lookup_elem(&counts, &stack);
    if (count)
        __sync_fetch_and_add(count, 1);
    else
        bpf_map_update_elem(&counts, &stack, &one, BPF_ANY);
    return 0;
}
char LICENSE[] SEC("license") = "GPL";
"""


def build(path: Path, room: int) -> None:
    """Build the program; into the same inode if it is there."""
    new = path.with_suffix(".new")
    source = path.with_suffix(".c")
    source.write_text(PROGRAM)
    flags = ("-O2", "-fomit-frame-pointer", f"-DROOM={room}", f"-DCALLS={CALLS}")
    subprocess.run(["gcc", *flags, "-o", new, source], check=True)
    path.touch(mode=0o755)
    with path.open("r+b") as file:
        file.write(new.read_bytes())
        file.truncate()


@contextmanager
def traced(cgroup: Path) -> Iterator[StackObject]:
    spec = purebpf.read_object(purebpf.build.compile(C)).set(group=cgroup.stat().st_ino)
    with (
        purebpf.stacks.load(spec, cgroup=str(cgroup)) as loaded,
        loaded.programs["on_call"].attach(f"{LIBC}:getppid"),
    ):
        yield loaded


def run(program: Path, cgroup: Path, loaded: StackObject) -> None:
    """Run the program once, in a cgroup, while stacks are finished."""
    with inside(cgroup):
        process = subprocess.Popen([program])
    while process.poll() is None:
        loaded.wait(0.01)
    assert process.returncode == 0


def chains(
    loaded: StackObject, place: str = "/chain"
) -> tuple[Counter[str], Counter[tuple[str, ...]]]:
    """How stacks end, and the program's functions in those that are called whole."""
    ends: Counter[str] = Counter()
    functions: Counter[tuple[str, ...]] = Counter()
    for number, count in loaded.maps["counts"].items():
        stack = loaded.stack(number)
        ends[stack.end] += count
        if not stack.end:
            own = [frame.function for frame in stack.frames if place in frame.file]
            functions[tuple(own)] += count
    return ends, functions


def test_stacks_of_short_processes_are_whole_once_their_files_are_known(tmp_path: Path) -> None:
    has_lookup = features.have_helper(
        bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT, bpf_func_id.BPF_FUNC_find_vma
    )
    if not has_lookup:
        pytest.skip("the kernel has no bpf_find_vma(), Linux 5.17")
    program = tmp_path / "chain"
    build(program, 64)
    with made(name="purebpf-starts") as cgroup, traced(cgroup) as loaded:
        for _ in range(3):
            run(program, cgroup, loaded)
            loaded.wait(0.3)
        loaded.settle(5)
        loaded.maps["counts"].clear()
        for _ in range(PROCESSES):
            run(program, cgroup, loaded)
        loaded.wait(0.3)
        ends, functions = chains(loaded)
    assert ends.total() == PROCESSES * CALLS
    assert ends[""] >= 0.99 * ends.total(), ends
    assert {*functions} == {(*CHAIN, "_start")}, functions


def test_a_file_that_was_written_to_has_no_rules_of_the_earlier_one(tmp_path: Path) -> None:
    program = tmp_path / "chain"
    ends: Counter[str] = Counter()
    with made(name="purebpf-rewritten") as cgroup, traced(cgroup) as loaded:
        for room in (64, 640, 128, 2048):
            build(program, room)
            inode = os.stat(program).st_ino
            for _ in range(3):
                run(program, cgroup, loaded)
            assert os.stat(program).st_ino == inode
            loaded.wait(0.3)
            of_room, functions = chains(loaded)  # names are read from the file as it is now
            assert functions.total() > CALLS
            assert {*functions} == {(*CHAIN, "_start")}, (room, functions, of_room)
            ends += of_room
            loaded.maps["counts"].clear()
    assert ends.total() == 12 * CALLS


def test_tables_of_all_libraries_are_there_before_a_burst(tmp_path: Path) -> None:
    """A stack of each library comes within milliseconds: far too many to be copied."""
    (tmp_path / "library.c").write_text(LIBRARY)
    (tmp_path / "many.c").write_text(MANY)
    flags = ("-O2", "-fomit-frame-pointer")
    for name, *more in (("library.so", "-shared", "-fPIC", "library.c"), ("many", "many.c")):
        command = ["gcc", *flags, "-o", name, *more, "-ldl"]
        subprocess.run(command, check=True, cwd=tmp_path)
    libraries = [tmp_path / f"library{number}.so" for number in range(150)]
    for library in libraries:
        shutil.copy(tmp_path / "library.so", library)
    with made(name="purebpf-ahead") as cgroup, ExitStack() as owned:
        with inside(cgroup):
            process = owned.enter_context(
                subprocess.Popen(
                    [tmp_path / "many", *libraries],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
        owned.callback(process.kill)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        loaded = owned.enter_context(traced(cgroup))
        assert loaded.settle(20)
        process.stdin.write(b"x")
        process.stdin.flush()
        while process.poll() is None:
            loaded.wait(0.01)
        loaded.wait(0.1)
        ends, functions = chains(loaded, str(tmp_path))
    assert ends == {"": 40 * len(libraries)}
    assert functions == {("leaf", "work", "main", "_start"): 40 * len(libraries)}
