"""Iterators over the objects of the kernel, watchpoints, and addresses of variables."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf"),
    pytest.mark.any_kernel,  # guests before 5.12 lack atomic exchange
]

COMMAND = (sys.executable, "-P", "-m", "purebpf", "script")
WORKLOAD = """
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
int answer = 4242; char small = 7;
int touch(int by) { answer += by; return answer; }
int main(void)
{
    char *page = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    for (int i = 0; i < 13; i++)
        page[0] = i;
    for (int i = 0; i < 5; i++)
        page[64] = i;
    return touch(1) == 0;
}
"""


def script(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script to its end."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False,
                          timeout=90)  # fmt: skip


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Threads of this process that wait."""
    leave = threading.Event()
    started = [threading.Thread(target=leave.wait) for _ in range(count)]
    for thread in started:
        thread.start()
    try:
        yield
    finally:
        leave.set()
        for thread in started:
            thread.join()


@pytest.fixture(scope="module", params=["-no-pie", "-pie"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that writes 13 times to a byte at 0x10000000, linked in both ways."""
    path = tmp_path_factory.mktemp("watched") / "workload"
    option = [request.param, "-fPIE"] if request.param == "-pie" else [request.param, "-fno-pie"]
    subprocess.run(
        ["gcc", "-g", "-O0", *option, "-x", "c", "-o", str(path), "-"],
        input=WORKLOAD, text=True, check=True,
    )  # fmt: skip
    return path


@pytest.mark.needs("new_iterators")
def test_iterations_see_each_thread_of_a_process_once() -> None:
    text = (
        f"iter:task /ctx.task.tgid == {os.getpid()}/ {{ @n = count(); @[ctx.task.pid] = count(); }}"
    )
    with threads(11):
        wanted = sorted(map(int, os.listdir("/proc/self/task")))
        done = script("-q", "-e", text)
    seen = [line for line in done.stdout.splitlines() if line.startswith("@[")]
    assert sorted(seen) == sorted(f"@[{number}]: 1" for number in wanted)
    assert f"@n: {len(wanted)}" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.needs("new_iterators")
def test_paths_of_open_files(tmp_path: Path) -> None:
    text = 'iter:task_file { printf("%d %s\\n", ctx.fd, path(ctx.file.f_path)); } end { print(9); }'
    with ExitStack() as stack:
        files = [stack.enter_context((tmp_path / f"f{number}").open("w")) for number in range(7)]
        opened = {f"{file.fileno()} {file.name}" for file in files}
        done = script("-q", "-p", str(os.getpid()), "-e", text)
    lines = done.stdout.splitlines()
    assert {line for line in lines if str(tmp_path) in line} == opened
    assert lines[-3:] == ["9", "", ""]


def test_exit_gives_the_status_after_an_iteration() -> None:
    text = f'iter:task /ctx.task.tgid == {os.getpid()}/ {{ printf("%s\\n", probe); exit(3); }}'
    with threads(4):
        wanted = len(os.listdir("/proc/self/task"))
        done = script("-e", text)
    assert (done.returncode, done.stdout) == (3, "iter:task\n" * wanted + "\n\n")
    assert done.stderr == "Attached 1 probe\n"


@pytest.mark.parametrize("probe", ["iter:task", "begin"])
def test_the_name_of_the_process_needs_no_other_word_in_the_script(probe: str) -> None:
    done = script("-q", "-e", f"{probe} {{ @ = comm(pid); exit(); }}")
    assert re.fullmatch(r"\n*@: pytho\S*\n*", done.stdout), done


def test_an_iterator_that_the_kernel_does_not_have_is_named() -> None:
    done = script("-e", "iter:tasks { }")
    assert done.returncode == 1
    assert "iter tasks not available for your kernel version" in done.stderr
    assert "similar: task" in done.stderr


@pytest.mark.needs("gcc", "x86_64")
def test_watchpoints_count_each_write(program: Path) -> None:
    text = "watchpoint:0x10000000:1:w { @first = count(); } w:0x10000040:8:w { @second = count(); }"
    done = script("-q", "-c", str(program), "-e", text)
    assert done.stdout.strip() == "@first: 13\n@second: 5"
    assert done.stderr == ""


@pytest.mark.needs("gcc", "x86_64")
@pytest.mark.parametrize("probe", ["uprobe", "uretprobe"])
def test_variables_of_the_program_by_name(program: Path, probe: str) -> None:
    text = f'{probe}:{program}:touch {{ printf("%d %d\\n", *uaddr("answer"), *uaddr("small")); }}'
    done = script("-q", "-c", str(program), "-e", text)
    assert done.stdout.strip() == ("4242 7" if probe == "uprobe" else "4243 7")
    assert done.stderr == ""


@pytest.mark.needs("gcc", "x86_64")
def test_a_variable_that_is_not_there_is_named(program: Path) -> None:
    done = script("-e", f'uprobe:{program}:touch {{ uaddr("no_such_variable") }}')
    assert done.returncode == 1
    assert "Could not resolve symbol: no_such_variable" in done.stderr


def test_arguments_that_the_kernel_describes_are_listed() -> None:
    done = script("-l", "-v", "iter:task_file")
    assert done.stdout == (
        "iter:task_file\n    struct task_struct * task\n    u32 fd\n    struct file * file\n"
    )
    done = script("-lv", "rawtracepoint:sched_process_exec")
    first, *arguments = done.stdout.splitlines()
    assert first == "rawtracepoint:vmlinux:sched_process_exec"
    assert arguments[0] == "    struct task_struct * p"


def test_the_arguments_of_a_tracepoint_are_a_value() -> None:
    text = (
        "rawtracepoint:sched_process_exec { print(args); @ = args; @k[args.old_pid] = args; "
        'exit(); } interval:ms:50 { system("true"); }'
    )
    output = script("-q", "--unsafe", "-e", text).stdout
    shown = r"\{ \.p = 0xffff\w+, \.old_pid = \d+, \.bprm = 0xffff\w+ \}"
    assert re.search(rf"^{shown}$", output, re.MULTILINE)
    assert re.search(rf"^@: {shown}$", output, re.MULTILINE)


@pytest.mark.needs("x86_64")
def test_a_module_that_is_not_loaded_is_named() -> None:
    done = script("-e", "kprobe:no_such_module:vfs_read { }")
    assert done.returncode == 1
    assert "specified module no_such_module in probe kprobe:no_such_module:vfs_read" in done.stderr
    done = script("-e", "config = { missing_probes = ignore } fentry:no_such_function { }")
    assert (done.returncode, done.stderr) == (1, "No probes to attach\n")
