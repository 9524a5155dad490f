"""A deadlock that is older than the measurement."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.environment import run

pytestmark = pytest.mark.needs(
    "bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "x86_64", "atomic_fetch"
)
SOURCE = """
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *debit(void *none) {
    pthread_mutex_lock(&one);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&other);
    return none;
}
static void *credit(void *none) {
    pthread_mutex_lock(&other);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&one);
    return none;
}
int main(void) {
    pthread_t thread;
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, NULL, debit, NULL);
    pthread_create(&thread, NULL, credit, NULL);
    pause();
}
"""


def _in_futex(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    return sorted(
        int(task.name)
        for task in tasks.iterdir()
        if (task / "syscall").read_text().startswith("202 ")
    )


@pytest.fixture
def deadlocked(tmp_path: Path) -> Iterator[tuple[int, list[int]]]:
    """The process, and its two threads that wait for each other."""
    (tmp_path / "bank.c").write_text(SOURCE)
    subprocess.run(
        ["gcc", "-pthread", "-o", tmp_path / "bank", tmp_path / "bank.c"], check=True, cwd=tmp_path
    )
    with subprocess.Popen([tmp_path / "bank"]) as process:
        try:
            while len(waiting := _in_futex(process.pid)) < 2:
                pass
            yield process.pid, waiting
        finally:
            process.kill()


def test_waits_of_before_the_run_name_the_ring(deadlocked: tuple[int, list[int]]) -> None:
    pid, (first, second) = deadlocked
    text = run("lock", "--userspace", "-p", str(pid), "0.3").stdout
    assert (
        f"deadlock in process {pid}: thread {first} in debit [bank] waits for the lock of {second},"
        f" {second} in credit [bank] waits for the lock of {first}\n"
    ) in text
    assert "2 threads wait in futex(2) since before the run" in text


def test_a_dump_names_the_ring_and_its_functions(deadlocked: tuple[int, list[int]]) -> None:
    pid, (first, second) = deadlocked
    text = run("dump", "-p", str(pid)).stdout
    assert f"deadlock: thread {first} waits for the lock of {second}" in text
    assert "waits for a lock in debit [bank]" in text
    assert "waits for a lock in credit [bank]" in text
