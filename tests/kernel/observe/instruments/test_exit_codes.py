"""The end of a process is shown as its parent is told it, whichever thread was the last."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from purebpf.observe.instruments.wait_reasons import WaitReasons
from purebpf.tools.exec import ExecOptions, Processes
from purebpf.tools.exec.render import JsonPrinter
from tests.commands.following import follow

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "task_pt_regs", "gcc")

TIMES = 7
SOURCE = """
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *outlive(void *code)
{
	usleep(20000);
	syscall(SYS_exit, (long)code);
	return NULL;
}

/* the leader ends with the first number, another thread later with the second */
int main(int argc, char **argv)
{
	pthread_t thread;

	pthread_create(&thread, NULL, outlive, (void *)(long)atoi(argv[2]));
	syscall(SYS_exit, atoi(argv[1]));
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Whose last thread is not its first."""
    program = tmp_path_factory.mktemp("ends") / "outlived"
    source = program.with_suffix(".c")
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-O2", "-pthread", "-o", program, source], check=True)
    return program


def run(program: Path, codes: Sequence[int]) -> int:
    """Return the code that the parent is told: the leader's, or since 5.18 the last thread's."""
    return subprocess.run([program, *map(str, codes)], check=False).returncode


@pytest.mark.parametrize("codes", [(5, 3), (5, 0), (0, 3)])
def test_triage_counts_the_code_that_the_parent_sees(program: Path, codes: Sequence[int]) -> None:
    with WaitReasons() as reasons:
        reasons.start()
        told = Counter(run(program, codes) for _ in range(TIMES))
        reasons.stop()
        own = [end for end in reasons.ends() if end.parent == os.getpid()]
    told.pop(0, None)
    assert {(end.comm, end.code >> 8): end.times for end in own} == {
        ("outlived", code): times for code, times in told.items()
    }


@pytest.mark.parametrize("codes", [(5, 3), (0, 3)])
def test_exec_shows_the_status_that_the_parent_sees(program: Path, codes: Sequence[int]) -> None:
    command = (str(program), *map(str, codes))
    make = partial(Processes, ExecOptions(command=command))
    shown = follow(make, JsonPrinter().show, command)
    statuses = [event["status"] for event in shown if event["event"] == "exit"]
    assert statuses == [run(program, codes)]
