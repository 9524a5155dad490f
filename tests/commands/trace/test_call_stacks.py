"""Stacks of calls: from where a known program made them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environment import run

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "current_task_btf")

PROGRAM = """
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline)) void innermost(void)
{
	syscall(SYS_getsid, -2);
	__asm__ volatile("");
}

__attribute__((noinline)) void middle(int turns)
{
	for (int turn = 0; turn < turns; turn++) {
		innermost();
		usleep(100);
	}
	__asm__ volatile("");
}

int main(void)
{
	middle(211);
	return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """211 calls of getsid(2) in `innermost`, without frame pointers."""
    place = tmp_path_factory.mktemp("call_stacks")
    (place / "calls.c").write_text(PROGRAM)
    words = ("gcc", "-O2", "-fomit-frame-pointer", "-o", place / "calls", place / "calls.c")
    subprocess.run(words, check=True)
    return place / "calls"


def stacks_of(*words: str) -> tuple[list[list[str]], dict[str, int]]:
    """The stacks of the calls of getsid(2) as names of functions, and what was lost."""
    result = run("trace", "--format", "json", "-e", "getsid", *words)
    *calls, loss = map(json.loads, result.stdout.splitlines())
    shown = [call["stack"] for call in calls if call["event"] == "call"]
    return [[re.split("[+ ]", frame)[0] for frame in stack] for stack in shown], loss["loss"]


@pytest.mark.needs("gcc", "x86_64", "task_pt_regs")
def test_each_call_has_its_whole_stack(program: Path) -> None:
    """But those of which the copy came too late, which are counted."""
    stacks, loss = stacks_of("--call-graph", "auto", "--", str(program))
    assert len(stacks) == 211
    whole = [stack for stack in stacks if stack[1:4] == ["innermost", "middle", "main"]]
    assert any(stack[-1] == "_start" for stack in whole)
    assert len(whole) + loss["copies_lost"] + loss["places_taken"] >= 211, stacks


@pytest.mark.needs("gcc")
def test_frame_pointers_give_what_they_can(program: Path) -> None:
    stacks, _ = stacks_of("--call-graph", "fp", "--", str(program))
    assert len(stacks) == 211
    assert all(stacks)


def test_a_stack_names_functions_of_python() -> None:
    code = """
import os, time
def ask():
    for _ in range(101):
        os.getsid(0)
        time.sleep(0.005)
def begin():
    ask()
begin()
"""
    stacks, _ = stacks_of("--call-graph", "auto", "--", sys.executable, "-S", "-E", "-c", code)
    assert len(stacks) == 101
    assert any("ask" in stack and "begin" in stack for stack in stacks)


def test_without_the_option_there_are_no_stacks() -> None:
    result = run("trace", "--format", "json", "-e", "exit_group", "--", "true")
    call = json.loads(result.stdout.splitlines()[0])
    assert call["name"] == "exit_group"
    assert "stack" not in call


def test_text_shows_a_stack_below_its_call(program: Path) -> None:
    words = ("--call-graph", "auto", "--max-events", "211", "-e", "getsid", "--", str(program))
    result = run("trace", "--format", "strace", *words)
    assert re.search(r"getsid\(-2\) += -1 ESRCH .*\n > ", result.stdout)
    result = run("trace", *words)
    lines = result.stdout.splitlines()
    assert lines[1].split()[4].startswith("getsid("), lines[1]
    assert lines[2].startswith(" " * 35)
