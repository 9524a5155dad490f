"""The stacks that slow calls end in, of a program without frame pointers that is known."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.tools.latency import Call, CallLatency, LatencyOptions
from tests.support.environment import run, said
from tests.support.nightly import by_day

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "gcc", "x86_64")

TURNS = 7
SLOW_US = 3000
SLOWER_MS = 1.5
"""A call is timed from when the program at its beginning is done: its sleep may be longer."""
LEVELS = tuple(f"level{number}" for number in (5, 4, 3, 2, 1))
CHAIN = (*LEVELS, "main")
PROGRAM = f"""
#include <sys/syscall.h>
#include <unistd.h>

static volatile int sink;

__attribute__((noinline)) int leaf(int word)
{{
	PROBE_begin;
	usleep({SLOW_US});
	PROBE_end;
	return sink += word;
}}

#define LEVEL(name, next)                                         \\
	__attribute__((noinline)) int name(int word)              \\
	{{                                                         \\
		int result = next(word);                          \\
		sink += result;                                   \\
		return result + 1;                                \\
	}}
LEVEL(level5, leaf)
LEVEL(level4, level5)
LEVEL(level3, level4)
LEVEL(level2, level3)
LEVEL(level1, level2)

__attribute__((noinline)) int again(int times)
{{
	int result = times ? again(times - 1) : leaf(1);
	sink += result;
	return result + 1;
}}

int main(void)
{{
	char line;

	read(0, &line, 1);
	for (int turn = 0; turn < {TURNS}; turn++)
		level1(turn);
	again(11);
	return 0;
}}
"""
NOTE = (
    '990: nop; .pushsection .note.stapsdt, "?", "note"; .balign 4',
    '.4byte 992f-991f, 994f-993f, 3; 991: .asciz "stapsdt"; 992: .balign 4',
    '993: .8byte 990b, 0, 0; .asciz "chain"; .asciz "NAME"; .asciz ""; 994: .balign 4',
    ".popsection",
)
"""A static probe, as <sys/sdt.h> makes it."""
TABLES = pytest.mark.needs("task_pt_regs", "atomic_fetch")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Waits for a byte, then calls `leaf` through level1 to level5, and once by `again`."""
    place = tmp_path_factory.mktemp("slow_stacks")
    (place / "chain.c").write_text(PROGRAM)
    notes = {name: json.dumps("\n".join(NOTE).replace("NAME", name)) for name in ("begin", "end")}
    probes = [f"-DPROBE_{name}=__asm__ volatile({note})" for name, note in notes.items()]
    words = ("gcc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-w")
    subprocess.run([*words, *probes, "-o", place / "chain", place / "chain.c"], check=True)
    return place / "chain"


def slow_calls(program: Path, *functions: str, **fields: object) -> list[Call]:
    """The calls of a run that loses nothing."""
    options = LatencyOptions(tuple(f"{program}:{name}" for name in functions))
    asked = options._replace(slower_ms=SLOWER_MS, stacks=True, **fields)  # type: ignore[arg-type]
    with (
        subprocess.Popen([program], stdin=subprocess.PIPE) as process,
        CallLatency(asked._replace(pids=(process.pid,))) as session,
    ):
        process.communicate(b"\n")
        events = [*session.drain(), *(ending := session.stop()).events]
    assert process.returncode == 0
    lost = {cause.name for cause in ending.loss.causes if cause.lost and not cause.is_note}
    assert lost <= {"sideband_lost"}  # of the rest of the machine
    return [event for event in events if isinstance(event, Call)]


def own_frames(call: Call) -> tuple[str, ...]:
    """As far as `main`."""
    names = call.user_stack
    return names[: names.index("main") + 1] if "main" in names else names


@TABLES
@pytest.mark.parametrize("mode", by_day(["auto", "tables", "deep", "copy"], ["auto", "copy"]))
def test_the_callers_of_a_slow_call_are_all_there(program, mode):
    """The first call, too, of which no table is known yet."""
    calls = slow_calls(program, "leaf", call_graph=mode)
    again = ("again",) * 12 + ("main",)
    assert Counter(map(own_frames, calls)) == {CHAIN: TURNS, again: 1}
    assert {call.user_stack[-1] for call in calls} == {"_start"}
    assert {call.kernel_stack for call in calls} == {()}


@TABLES
@pytest.mark.parametrize("mode", ["auto", "copy"])
def test_callers_may_be_traced_themselves(program, mode):
    """The kernel has put its own return address where each of them goes on."""
    calls = slow_calls(program, "leaf", "level?", call_graph=mode)
    for at, name in enumerate(("leaf", *LEVELS)):
        ended = [call for call in calls if call.function == name and "again" not in call.user_stack]
        assert Counter(map(own_frames, ended)) == {CHAIN[at:]: TURNS}
    assert {call.user_stack[-1] for call in calls} == {"_start"}


@TABLES
def test_a_function_that_calls_itself_has_each_of_its_calls(program):
    """User space, which finishes copies, knows sixteen of them, and the program all."""
    calls = slow_calls(program, "leaf", "again")
    depths = sorted(len(own_frames(call)) for call in calls if call.function == "again")
    assert depths == list(range(1, 13))


@TABLES
def test_a_pair_of_static_probes_has_the_stack_of_its_end(program):
    pair = f"{program}:chain:begin,end"
    calls = slow_calls(program, pairs=(pair,))
    assert [own_frames(call) for call in calls[:TURNS]] == [("leaf", *CHAIN)] * TURNS


@TABLES
@pytest.mark.needs("tracefs")
def test_a_pair_of_tracepoints_has_the_stacks_of_its_end(program):
    pair = "syscalls:sys_enter_clock_nanosleep,sys_exit_clock_nanosleep"
    calls = slow_calls(program, pairs=(pair,))
    named = [own_frames(call) for call in calls]
    assert [stack[stack.index("leaf") :] for stack in named[:TURNS]] == [("leaf", *CHAIN)] * TURNS


def test_frame_pointers_give_what_they_can(program):
    """And where tables are not possible, `auto` is the same."""
    calls = slow_calls(program, "leaf", call_graph="fp")
    assert len(calls) == TURNS + 1
    assert {call.user_stack[0] for call in calls} <= {"level5", "again"}
    assert {call.user_stack[-1] for call in calls} == {"[unverified]"}


@pytest.mark.needs("kprobes")
@TABLES
def test_a_slow_function_of_the_kernel_has_both_stacks(program):
    options = {"slower_ms": SLOWER_MS, "stacks": True}
    with (
        subprocess.Popen([program], stdin=subprocess.PIPE) as process,
        CallLatency(
            LatencyOptions(("hrtimer_nanosleep",), pids=(process.pid,))._replace(**options)
        ) as session,
    ):
        process.communicate(b"\n")
        events = [*session.drain(), *session.stop().events]
    calls = [event for event in events if isinstance(event, Call)]
    assert len(calls) == TURNS + 1
    named = [own_frames(call) for call in calls]
    assert [stack[stack.index("leaf") :] for stack in named[:TURNS]] == [("leaf", *CHAIN)] * TURNS
    assert {"do_syscall_64" in call.kernel_stack for call in calls} == {True}


@TABLES
def test_the_output_has_stacks_and_how_they_were_walked(program, tmp_path):
    def done(*words: str) -> Iterator[str]:
        output = tmp_path / "result"
        words = ("--slower", "2", "--stacks", "-o", str(output), *words)
        shell = ("sh", "-c", f"echo | {program}")
        ended = run("latency", f"{program}:leaf", *words, "--", *shell)
        assert ended.returncode == 0, said(ended)
        return iter(output.read_text().splitlines())

    *calls, summary, _ = map(json.loads, done("--format", "json"))
    assert summary["call_graph"] == "tables"
    assert [tuple(call["user_stack"][:6]) for call in calls[:TURNS]] == [CHAIN] * TURNS
    text = [line.strip() for line in done("--format", "text")]
    assert sum(text[at : at + 6] == list(CHAIN) for at in range(len(text))) == TURNS
    page = "\n".join(done("--format", "html"))
    assert page.count("<pre>" + "\n".join(CHAIN)) == TURNS


PYTHON = f"""
import sys, time

def inner():
    time.sleep({SLOW_US / 1e6})

def outer():
    inner()

sys.stdin.read(1)
for _ in range({TURNS}):
    outer()
"""


@TABLES
@pytest.mark.needs("tracefs")
def test_callers_in_python_are_shown(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(PYTHON)
    pair = "syscalls:sys_enter_clock_nanosleep,sys_exit_clock_nanosleep"
    options = LatencyOptions(pairs=(pair,), slower_ms=0, stacks=True)
    with (
        subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE) as process,
        CallLatency(options._replace(pids=(process.pid,))) as session,
    ):
        process.communicate(b"\n")
        events = [*session.drain(), *session.stop().events]
    names = [call.user_stack for call in events if isinstance(call, Call)]
    assert len(names) == TURNS
    python = ("inner", "outer", "<module>")
    assert [stack[-3:] for stack in names[1:]] == [python] * (TURNS - 1), names
