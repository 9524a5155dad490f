"""Stacks of calls: from where a known program made them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from purebpf.observe.instruments import call_stacks
from purebpf.tools.trace import TraceOptions, Traces
from purebpf.tools.trace.events import Call
from tests.support.environment import run

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")

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


SIGNALLING = """
#include <signal.h>

__attribute__((noinline)) void innermost(void)
{
	raise(SIGUSR1);
	__asm__ volatile("");
}

__attribute__((noinline)) void middle(int turns)
{
	for (int turn = 0; turn < turns; turn++)
		innermost();
	__asm__ volatile("");
}

int main(void)
{
	signal(SIGUSR1, SIG_IGN);
	middle(101);
	return 0;
}
"""


@pytest.mark.needs("gcc", "x86_64", "task_pt_regs")
def test_each_tracepoint_has_the_stacks_it_was_passed_in(tmp_path: Path) -> None:
    """Of the kernel, then of the program, with and without calls beside it."""
    (tmp_path / "signals.c").write_text(SIGNALLING)
    program = tmp_path / "signals"
    words = ("gcc", "-O2", "-fomit-frame-pointer", "-o", program, tmp_path / "signals.c")
    subprocess.run(words, check=True)
    for events in ("signal:signal_generate", "signal:signal_generate,tgkill"):
        result = run(
            *("trace", "--format", "json", "--call-graph", "auto", "-e", events, "--", str(program))
        )
        *shown, loss = map(json.loads, result.stdout.splitlines())
        generated = [event for event in shown if event.get("values", {}).get("sig") == 10]
        stacks = [[re.split("[+ ]", frame)[0] for frame in at["stack"]] for at in generated]
        assert len(stacks) == 101
        first = stacks[-1]
        kernel = [at for at in generated[-1]["stack"] if at.endswith("[kernel]")]
        assert first[len(kernel) - 1].startswith("entry_SYSCALL_64"), first
        assert any("send_signal" in name for name in first[: len(kernel)]), first
        named = ["innermost", "middle", "main"]
        whole = [stack for stack in stacks if [name for name in stack if name in named] == named]
        lost = loss["loss"]["copies_lost"] + loss["loss"]["places_taken"]
        assert len(whole) + lost >= 101, stacks
        calls = [event for event in shown if event["event"] == "call"]
        assert len(calls) == (101 if "tgkill" in events else 0)
        assert all(call["stack"] for call in calls)


def test_a_thread_of_the_kernel_has_a_stack_of_the_kernel() -> None:
    result = run("trace", "--format", "json", "--call-graph", "fp", "-e", "sched:sched_switch", "1")
    *shown, _ = map(json.loads, result.stdout.splitlines())
    threads = [at for at in shown if at.get("values", {}).get("prev_comm", "").startswith("rcu")]
    assert threads, "RCU did nothing for a second"
    for event in threads:
        assert event["stack"], event
        assert all(frame.endswith("]") for frame in event["stack"]), event
        assert any(frame.startswith("ret_from_fork") for frame in event["stack"]), event


@pytest.mark.needs("task_pt_regs")
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


BURSTS, BURST, ROOM = 7, 200, 512
MANY = """
#include <sys/syscall.h>
#include <unistd.h>

static volatile int calls;

__attribute__((noinline)) void odd(unsigned path, int depth);

__attribute__((noinline)) void even(unsigned path, int depth)
{
	if (!depth)
		syscall(SYS_getsid, -2);
	else if (path & 1)
		odd(path >> 1, depth - 1);
	else
		even(path >> 1, depth - 1);
	calls++;
}

__attribute__((noinline)) void odd(unsigned path, int depth)
{
	even(path, depth);
	calls++;
}

int main(void)
{
	char byte;

	for (unsigned path = 0; read(0, &byte, 1) == 1; write(1, &byte, 1))
		for (int i = 0; i < 200; i++)
			even(path++, 12);
	return 0;
}
"""


@pytest.mark.needs("gcc", "x86_64", "task_pt_regs")
def test_new_stacks_take_the_place_of_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more different stacks than there is room for, the table loses none."""
    monkeypatch.setattr(call_stacks, "STACKS", ROOM)
    (tmp_path / "many.c").write_text(MANY)
    words = ("gcc", "-O1", "-fno-optimize-sibling-calls", "-w", "-o", tmp_path / "many")
    subprocess.run((*words, tmp_path / "many.c"), check=True)
    shown: list[Call] = []
    pipe = subprocess.PIPE
    with subprocess.Popen([tmp_path / "many"], stdin=pipe, stdout=pipe, bufsize=0) as many:
        assert many.stdin is not None
        assert many.stdout is not None
        options = TraceOptions(pids=(many.pid,), events=("getsid",), call_graph="auto")
        with Traces(options) as trace:
            for burst in range(1, BURSTS + 1):
                many.stdin.write(b"!")
                assert many.stdout.read(1) == b"!"
                give_up = time.monotonic() + 30
                while len(shown) < burst * BURST and time.monotonic() < give_up:
                    shown += [event for event in trace.drain() if isinstance(event, Call)]
            ending = trace.stop()
        many.stdin.close()
    lost = {cause.name: cause.lost for cause in ending.loss.causes}
    assert len(shown) == BURSTS * BURST
    missing = sum(call.stack == ("[lost stack]",) for call in shown)
    assert missing == lost["stacks_forgotten"] + lost["places_taken"]
    assert lost["stacks_full"] == 0
    assert len({call.stack for call in shown}) > 2 * ROOM - missing
