"""A process whose first thread has called pthread_exit() while another one goes on.

/proc/PID is that of a zombie then: it has no maps, no memory, no root and no program.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.measure.sched_trace import Request, ThreadTime
from purebpf.syscall import proc
from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc", "task_pt_regs")

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
static volatile unsigned long sink;
__attribute__((noinline)) void innermost(void)
{
    for (unsigned long n = 0; n < 20000000UL; n++)
        sink += n;
}
__attribute__((noinline)) void outermost(void) { innermost(); sink++; }
static void *go_on(void *nothing)
{
    for (;;)
        outermost();
    return nothing;
}
int main(void)
{
    pthread_t other;
    pthread_create(&other, 0, go_on, 0);
    puts("leaves");
    fflush(stdout);
    pthread_exit(0);
}
"""


@pytest.fixture
def leaderless(tmp_path: Path) -> Iterator[int]:
    """The number of such a process."""
    source, program = tmp_path / "leaves.c", tmp_path / "leaves"
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-pthread", source, "-o", program], check=True)
    with subprocess.Popen([program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"leaves\n"
        while (proc.status(process.pid) or {})["State"][0] != "Z":
            time.sleep(0.01)
        yield process.pid
        process.kill()


def purebpf(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "purebpf", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_proc_says_of_it_is_said_of_another_thread(leaderless: int) -> None:
    other = proc.with_memory(leaderless)
    assert proc.threads(leaderless) == [other] != [leaderless]
    assert "leaves" in (proc.maps(leaderless) or "")
    assert (proc.command_line(leaderless) or "").endswith("leaves")
    fd = proc.open_memory(leaderless)
    assert fd is not None
    (line,) = [line for line in (proc.maps(other) or "").split("\n") if "r-xp" in line][:1]
    assert len(os.pread(fd, 16, int(line.split("-")[0], 16))) == 16
    os.close(fd)


def test_other_processes_have_their_own_number() -> None:
    assert proc.with_memory(os.getpid()) == os.getpid()
    assert proc.with_memory(2) == 2, "a thread of the kernel"
    assert proc.with_memory(1 << 22) == 1 << 22, "nobody"


def test_its_stacks_have_names(leaderless: int) -> None:
    folded = ""
    while not folded:  # on a busy machine, the thread may not run for a second
        folded = purebpf("profile", "-f", "-p", str(leaderless), "1")
    assert any("outermost;innermost" in line for line in folded.splitlines()), folded


def test_its_threads_are_dumped_without_the_dead_one(leaderless: int) -> None:
    dumped = purebpf("dump", str(leaderless))
    assert f'Thread {proc.with_memory(leaderless)} "leaves"' in dumped
    assert f"Thread {leaderless} " not in dumped


def test_its_functions_can_be_traced_and_sampled(leaderless: int, tmp_path: Path) -> None:
    assert "innermost" in purebpf("sampleip", "-p", str(leaderless), "0.5")
    assert purebpf("latency", "-p", str(leaderless), f"{tmp_path}/leaves:innermost", "1")


def test_the_dead_thread_does_not_wait(leaderless: int) -> None:
    with ThreadTime(Request(pids=(leaderless,))) as measuring:
        time.sleep(0.3)
        times = measuring.stop()
    assert leaderless not in {place.tid for place in times.spans}
