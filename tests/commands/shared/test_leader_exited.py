"""A process whose first thread has called pthread_exit() while another one goes on.

/proc/PID is that of a zombie then: it has no maps, no memory, no root and no program.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.measure.sched_trace import Request, ThreadTime
from purebpf.syscall import proc
from tests.commands.conftest import ROOT
from tests.support.nightly import by_day

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


ALLOCATES = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void *volatile kept;
__attribute__((noinline)) void step(void) { kept = malloc(64); free(kept); usleep(1000); }
static void *go_on(void *nothing)
{
    for (;;)
        step();
    return nothing;
}
int main(void)
{
    pthread_t other;
    pthread_create(&other, 0, go_on, 0);
    puts("runs");
    fflush(stdout);
    getchar();
    pthread_exit(0);
}
"""


@pytest.fixture
def steps(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose first thread leaves when its input ends."""
    source, program = tmp_path / "steps.c", tmp_path / "steps"
    source.write_text(ALLOCATES)
    subprocess.run(["gcc", "-O1", "-pthread", source, "-o", program], check=True)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"runs\n"
        yield process
        process.kill()


def leave(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    while (proc.status(process.pid) or {})["State"][0] != "Z":
        time.sleep(0.01)


def test_allocations_of_its_other_threads_are_counted(steps: subprocess.Popen[bytes]) -> None:
    leave(steps)
    said = purebpf("mem", "-p", str(steps.pid), "1", "--show", "allocated")
    assert "in 0 allocations, 0 freed" not in said, said


def test_calls_are_counted_again_after_the_thread_of_their_probes_left(
    steps: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """The kernel takes the probe of a thread that has ended out of its process."""
    words = ["-p", str(steps.pid), f"{tmp_path}/steps:step", "--interval", "1"]
    with subprocess.Popen(
        [sys.executable, "-m", "purebpf", "latency", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as latency:
        assert latency.stdout is not None
        assert any(line.endswith(" step\n") for line in latency.stdout)
        leave(steps)
        time.sleep(4)
        latency.send_signal(signal.SIGINT)
        out, said = latency.communicate()
    counts = [int(line.split()[0]) for line in out.splitlines() if line.endswith(" step")]
    assert sum(counts[-2:]) > 100, out
    assert "without the thread of their probes" in " ".join(said.split())


@pytest.mark.parametrize("kind", by_day(["uprobe", "uretprobe"], ["uprobe"]))
def test_a_script_counts_again_after_the_thread_of_its_probes_left(
    steps: subprocess.Popen[bytes], tmp_path: Path, kind: str
) -> None:
    show = 'printf("%d calls until %llu\\n", @n, nsecs(boot)); clear(@n);'
    text = f"{kind}:{tmp_path}/steps:step {{ @n++; }} interval:s:1 {{ {show} }}"
    with subprocess.Popen(
        [sys.executable, "-m", "purebpf", "script", "-p", str(steps.pid), "-e", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as script:
        assert script.stdout is not None
        assert any(" calls until " in line for line in script.stdout)
        leave(steps)
        gap_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + 4 * 10**9
        time.sleep(8)
        script.send_signal(signal.SIGINT)
        out, said = script.communicate()
    lines = [line.split() for line in out.splitlines() if " calls until " in line]
    assert sum(int(count) for count, *_, until in lines if int(until) > gap_ns) > 0, out
    assert "and they were attached again" in said


def test_the_dead_thread_does_not_wait(leaderless: int) -> None:
    with ThreadTime(Request(pids=(leaderless,))) as measuring:
        time.sleep(0.3)
        times = measuring.stop()
    assert leaderless not in {place.tid for place in times.spans}
