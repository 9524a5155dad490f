"""Uprobes with `pid=` whose thread ends while other threads go on."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import purebpf
from purebpf import asm

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")

SOURCE = """
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noipa)) void work(void) { usleep(10000); }
static void *loop(void *unused) {
  printf("%ld\\n", syscall(SYS_gettid)); fflush(stdout);
  for (;;) work();
}
static void *shorter(void *unused) {
  printf("%ld\\n", syscall(SYS_gettid)); fflush(stdout);
  getchar();
  printf("gone\\n"); fflush(stdout);
  return 0;
}
int main(void) {
  pthread_t one, two;
  pthread_create(&one, 0, loop, 0);
  pthread_create(&two, 0, shorter, 0);
  pthread_join(two, 0);
  getchar();
  pthread_exit(0);
}
"""


class Running:
    """The program, and the threads that it has told."""

    def __init__(self, path: Path, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.path, self.process, self.pid = path, process, process.pid
        self.tids = sorted(int(process.stdout.readline()) for _ in range(2))

    def go_on(self) -> None:
        """Let the second thread, then the first one end."""
        assert self.process.stdin is not None
        self.process.stdin.write("x")
        self.process.stdin.flush()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    path = tmp_path / "threads"
    (tmp_path / "threads.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O1", "-pthread", path.with_suffix(".c"), "-o", path], check=True)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([path], **pipes) as process:  # type: ignore[call-overload]
        try:
            yield Running(path, process)
        finally:
            process.kill()


@contextmanager
def counting(section: str) -> Iterator[tuple[purebpf.Program, Callable[[], int]]]:
    code = asm.Program("on_call", section)
    code.store_constant(asm.R10, -4, 0, 4)
    out = code.label()
    code.call_helper("map_lookup_elem", asm.MapName("calls"), asm.Stack(-4))
    code.jump("==", asm.R0, 0, out)
    code.move(asm.R1, 1)
    code.atomic_add(asm.R0, 0, asm.R1, 8)
    code.place(out)
    code.move(asm.R0, 0)
    code.exit()
    calls = asm.MapSpec("calls", asm.bpf_map_type.BPF_MAP_TYPE_ARRAY, 4, 8, 1)
    with purebpf.load(asm.build("threads", [code], maps=[calls])) as obj:
        yield obj.programs["on_call"], lambda: int.from_bytes(obj.maps["calls"][0], "little")


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)


def calls_in(count: Callable[[], int], seconds: float) -> int:
    before = count()
    time.sleep(seconds)
    return count() - before


@pytest.mark.parametrize(
    "section", ["uprobe", pytest.param("uprobe.multi", marks=pytest.mark.needs("uprobe_multi"))]
)
def test_a_thread_means_its_process(running: Running, section: str) -> None:
    """Calls of the others are seen, also when the thread has ended."""
    with (
        counting(section) as (program, count),
        program.attach(f"{running.path}:work", pid=running.tids[1]) as link,
    ):
        wait_for(count)
        running.go_on()
        wait_for(lambda: not Path(f"/proc/{running.pid}/task/{running.tids[1]}").exists())
        assert not link.has_ended()
        before = count()
        wait_for(lambda: count() > before + 3)
    assert link.has_ended()


def test_a_probe_whose_first_thread_ended_says_so_and_can_be_attached_again(
    running: Running,
) -> None:
    with counting("uprobe") as (program, count):
        with program.attach(f"{running.path}:work", pid=running.pid) as link:
            wait_for(count)
            assert not link.has_ended()
            running.go_on()
            running.go_on()
            wait_for(link.has_ended)
            wait_for(lambda: calls_in(count, 0.3) == 0)
        before = count()
        with program.attach(f"{running.path}:work", pid=running.pid) as link:
            wait_for(lambda: count() > before + 3)
            assert not link.has_ended()
            running.process.kill()
            wait_for(link.has_ended)
