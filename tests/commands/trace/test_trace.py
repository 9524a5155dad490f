"""System calls of known programs: strace agrees, each is counted, and what is lost is said."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from difflib import unified_diff
from functools import partial
from itertools import starmap
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from purebpf.measure.run import prepare
from purebpf.measure.run import run as follow_to_the_end
from purebpf.tools.trace import TraceOptions, Traces
from purebpf.tools.trace.events import Call, Ended, Event, Lost
from purebpf.tools.trace.render import JsonPrinter, describe
from tests.commands.following import follow
from tests.support.environment import run
from tests.support.patience import until

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")

SOURCE = Path(__file__).with_name("calls.c")
PYTHON = (sys.executable, "-S", "-E", "-c")
_JOINED = "{} {}".format
CLEAN = ("/usr/bin/env", "-i", "A=1")
"""What both tracers start the program with, so that its stack is the same."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The calls of calls.c, compiled."""
    target = tmp_path_factory.mktemp("trace") / "calls"
    subprocess.run(["gcc", "-O1", "-w", "-o", target, SOURCE], check=True)
    return target


def events_of(*command: str, **asked: Any) -> list[Event]:
    """Everything that is seen of a command."""
    events: list[Event] = []
    with prepare(partial(Traces, TraceOptions(command=command, **asked)), command) as (
        session,
        ends,
    ):
        last = follow_to_the_end(session, ends, lambda: events.extend(session.drain()))
        ends.status()
    return [*events, *last.events]


@pytest.mark.needs("gcc", "strace", "x86_64", "current_task_btf")
def test_strace_says_the_same(program: Path, tmp_path: Path) -> None:
    """Every call, argument and result of some 370 calls: 231 different ones, and those of ld.so."""
    assert len(compare_with_strace(program, tmp_path)) > 230


@pytest.mark.needs("gcc", "strace", "x86_64", "current_task_btf")
def test_strace_says_the_same_of_32_bit_programs(tmp_path: Path) -> None:
    """Also of what it does by socketcall(2). Its structs are others, and some of its arguments."""
    program, headers = tmp_path / "calls32", "/usr/include/x86_64-linux-gnu"
    options = (*("-m32", "-O1", "-w", "-nostdlib", "-static", "-ffreestanding", "-mno-sse"),
               *("-fno-stack-protector", "-fno-pic", "-no-pie", f"-I{headers}"))  # fmt: skip
    source = SOURCE.with_name("calls32.c")
    subprocess.run(["gcc", *options, "-o", program, source], check=True)
    names = compare_with_strace(program, tmp_path)
    assert len(names) > 120
    assert {"sendmmsg", "fcntl64", "accept", "sigreturn"} <= names


def compare_with_strace(program: Path, tmp_path: Path) -> set[str]:
    """Fail with what is different; the names of the calls."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    command = (*CLEAN, str(program))
    trace = (sys.executable, "-m", "purebpf", "trace", "--format", "strace", "-o", str(ours), "--")
    for tracer in (("strace", "-f", "-o", str(theirs)), trace):
        place = tmp_path / Path(tracer[0]).name
        place.mkdir()
        surroundings = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
        words = ("setarch", "-R", *tracer, *command)
        subprocess.run(words, check=True, cwd=place, env=surroundings)
    expected = sorted(lines_of(theirs, program, tmp_path / "strace"), key=itemgetter(0))
    actual = sorted(
        lines_of(ours, program, tmp_path / Path(sys.executable).name), key=itemgetter(0)
    )
    differences = unified_diff([*starmap(_JOINED, expected)], [*starmap(_JOINED, actual)], n=0)
    assert not (text := "\n".join(differences)), text
    return {line.partition("(")[0] for _, line in actual}


def lines_of(path: Path, program: Path, place: Path) -> Iterator[tuple[str, str]]:
    """Process and line, from the execve of the program on, without what may differ.

    That are numbers of processes, the order of flags, second names of a number, and strace's
    comments. A call that another thread interrupts is in one piece. A SIGCHLD that is ignored is
    delivered to a tracee only. What strace says at the start of a 32-bit program is here in each
    name.
    """
    raw = path.read_text().splitlines()
    begin = max(number for number, line in enumerate(raw) if f'execve("{program}"' in line)
    pids = dict.fromkeys(line.split(maxsplit=1)[0] for line in raw[begin:])
    numbers = {pid: f"PID{place}" for place, pid in enumerate(pids)}
    unfinished: dict[str, str] = {}
    for line in raw[begin + 1 :]:
        pid, text = line.split(maxsplit=1)
        if text.startswith(("--- SIGCHLD", "[ Process ")):
            continue
        if text.endswith(" <unfinished ...>"):
            unfinished[pid] = text.removesuffix(" <unfinished ...>")
            continue
        if text.startswith("<... "):
            text = unfinished.pop(pid) + text.partition("resumed>")[2]
        text = text.replace("/i386(", "(", 1)
        text = re.sub(r" /\* (?:\d{4}-|\w+_\?\?\?).*?\*/", "", re.sub(r"\s+= ", " = ", text))
        text = re.sub(r"\b[A-Z_0-9]+(?:\|\w+)+", sort_flags, text).replace(str(place), "PLACE")
        text = re.sub(r"\b[A-Z_0-9]+ or ", "", text.replace(",  ", ", "))  # names of one number
        for number, name in numbers.items():
            text = re.sub(rf"\b{number}\b", name, text)
        yield numbers[pid], text
    assert not unfinished


def sort_flags(match: re.Match[str]) -> str:
    return "|".join(sorted(match[0].split("|")))


def test_calls_are_counted_exactly() -> None:
    """1009 from each of three threads, and 211 that fail."""
    code = """
import os, threading
def work():
    for _ in range(1009):
        os.getppid()
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
for number in range(211):
    try:
        os.rmdir(f"/nothing/{number}")
    except OSError:
        pass
"""
    make = partial(Traces, TraceOptions(command=(*PYTHON, code)))
    shown = follow(make, JsonPrinter().show, (*PYTHON, code))
    calls = [event for event in shown if event["event"] == "call"]
    by_thread = Counter(call["tid"] for call in calls if call["name"] == "getppid")
    assert sorted(by_thread.values()) == [1009] * 3
    failed = [call for call in calls if call["name"] == "rmdir"]
    assert [call["arguments"] for call in failed] == [
        [f'"/nothing/{number}"'] for number in range(211)
    ]
    assert {(call["errno"], call["result"]) for call in failed} == {("ENOENT", -2)}
    assert calls[0]["name"] == "execve"
    assert calls[0]["result"] == 0
    assert sum(event["event"] == "exit" for event in shown) == 4


def test_filters_are_the_kernels() -> None:
    """-e, --failure, and --least: what is not asked for is not sent."""
    code = """
import os, time
os.getuid()
open("/dev/null").close()
try:
    open("/nothing")
except OSError:
    pass
time.sleep(0.05)
"""
    opens = events_of(*PYTHON, code, events=("open*", "!open_*"))
    assert {call.name for call in opens if isinstance(call, Call)} == {"openat"}
    assert {'"/dev/null"', '"/nothing"'} <= {
        call.arguments[1] for call in opens if isinstance(call, Call)
    }
    failures = events_of(*PYTHON, code, failed=True)
    assert all(call.errno for call in failures if isinstance(call, Call))
    assert any('"/nothing"' in call.arguments for call in failures if isinstance(call, Call))
    slow = [call for call in events_of(*PYTHON, code, least_ms=40) if isinstance(call, Call)]
    assert any(call.name == "clock_nanosleep" for call in slow)
    assert all(call.duration_ns >= 40e6 for call in slow)


def test_a_run_ends_after_so_many_calls() -> None:
    result = run("trace", "--format", "json", "--max-events", "7", "--", "sh", "-c", "ls; ls")
    events = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert [event["event"] for event in events].count("call") == 7


def test_a_call_that_lasts_is_shown_at_the_end() -> None:
    """Of one process by the end of the run, of the other as it is killed."""
    code = "import os; os.read(0, 1); os.read(0, 77)"
    with subprocess.Popen([*PYTHON, code], stdin=subprocess.PIPE) as waiting:
        assert waiting.stdin is not None
        with Traces(TraceOptions(pids=(waiting.pid,), events=("read", "exit*"))) as traces:
            waiting.stdin.write(b"\n")
            waiting.stdin.flush()
            assert until(lambda: " 0x4d " in Path(f"/proc/{waiting.pid}/syscall").read_text())
            last = traces.stop()
        waiting.kill()
    (call,) = [event for event in last.events if isinstance(event, Call) and event.result is None]
    assert (call.name, call.ending, call.words[0], call.words[2]) == ("read", "in flight", 0, 77)
    assert describe(call).endswith(", 77 <unfinished ...>")


def test_a_call_that_does_not_return_is_shown_with_the_end() -> None:
    code = "import os; os.fork() or os.kill(os.getpid(), 9); os.wait(); os._exit(7)"
    events = events_of(*PYTHON, code, events=("kill", "exit_group"))
    shown = [re.sub(r"\d{2,}", "PID", describe(event)) for event in events]
    assert [re.sub(r" +=", " =", text) for text in shown] == [
        "kill(PID, SIGKILL) = 0",
        "+++ killed by SIGKILL +++",
        "exit_group(7) = ?",
        "+++ exited with 7 +++",
    ]
    assert [event.ending for event in events if isinstance(event, Call)] == [
        "returned",
        "unfinished",
    ]


def test_calls_that_are_lost_are_said_in_their_place() -> None:
    """A reader that stops, a ring that is full: what is shown and what is lost are all there is."""
    code = "import os\nfor _ in range(40009): os.getppid()"
    small = partial(SmallRing, TraceOptions(command=(*PYTHON, code), events=("getppid",)))
    with prepare(small, (*PYTHON, code)) as (session, run_ends):
        assert run_ends.child is not None
        pid = run_ends.child.pid

        def wait_without_reading(*_: object) -> bool:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            return True

        last = follow_to_the_end(session, run_ends, wait=wait_without_reading)
        run_ends.status()
    events = last.events
    seen = sum(isinstance(event, Call) for event in events)
    lost = [event for event in events if isinstance(event, Lost)]
    assert lost
    assert seen + sum(event.calls for event in lost) == 40009
    assert all(event.by_name.keys() == {"getppid"} for event in lost)
    assert sum(sum(event.by_name.values()) for event in lost) == 40009 - seen
    ends_lost = 1 - sum(isinstance(event, Ended) for event in events)
    full = {cause.name: cause.lost for cause in last.loss.causes}["events_full"]
    assert full == 40009 - seen + ends_lost


class SmallRing(Traces):
    """With room for some five hundred calls."""

    def request(self) -> Any:
        request = super().request()
        return request._replace(sizes={"events": 1 << 16})


def test_descriptors_have_paths(tmp_path: Path) -> None:
    """Also those that are closed by the time that the call is shown."""
    code = f"""
import os
directory = os.open({str(tmp_path)!r}, os.O_RDONLY)
for name in ("one", "two"):
    file = os.open(name, os.O_CREAT | os.O_RDWR, dir_fd=directory)
    os.write(file, b"text")
    os.close(file)
"""
    events = events_of(*PYTHON, code, paths=True)
    calls = [call for call in events if isinstance(call, Call)]
    writes = [call.arguments[0].partition("<")[2] for call in calls if call.name == "write"]
    assert writes == [f"{tmp_path}/one>", f"{tmp_path}/two>"]
    opened = [call for call in calls if call.name == "openat" and '"two"' in call.arguments]
    assert [call.arguments[0].partition("<")[2] for call in opened] == [f"{tmp_path}>"]
    assert [call.result_text.partition("<")[2] for call in opened] == [f"{tmp_path}/two>"]


@pytest.mark.needs("gcc", "x86_64")
def test_calls_of_32_bit_programs_are_named_by_their_own_numbers(tmp_path: Path) -> None:
    """open(2) is 5 on i386, where 5 is fstat(2) of 64-bit programs."""
    source = tmp_path / "compat.c"
    source.write_text(COMPAT)
    subprocess.run(["gcc", "-w", "-o", tmp_path / "compat", source], check=True)
    events = events_of(str(tmp_path / "compat"))
    calls = [call for call in events if isinstance(call, Call) and call.abi == "i386"]
    assert [re.sub(" +=", " =", describe(call)) for call in calls] == [
        'open/i386("/nothing/at/all", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory)',
        'write/i386(-1, "text", 4) = -1 EBADF (Bad file descriptor)',
        "getppid/i386() = " + str(os.getpid()),
    ]


COMPAT = """
#include <string.h>
#include <sys/mman.h>

static long call(long nr, long a, long b, long c)
{
	long result;

	asm volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}

int main(void)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT;
	char *low = mmap(0, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);

	strcpy(low, "/nothing/at/all");
	strcpy(low + 100, "text");
	call(5, (long)low, 02000000, 0);
	call(4, -1, (long)low + 100, 4);
	call(64, 0, 0, 0);
	return 0;
}
"""


@pytest.mark.slow
def test_a_million_calls_are_shown_or_said_to_be_lost() -> None:
    """Takes 16 s on a busy machine: a million lines."""
    code = "import os\nfor _ in range(1000003): os.getppid()"
    events = events_of(*PYTHON, code, events=("getppid",))
    seen = sum(isinstance(event, Call) for event in events)
    assert seen + sum(event.calls for event in events if isinstance(event, Lost)) == 1_000_003


def test_signals_and_handlers_are_shown() -> None:
    code = """
import os, signal
signal.signal(signal.SIGUSR1, lambda *_: None)
os.kill(os.getpid(), signal.SIGUSR1)
"""
    result = run("trace", "--format", "strace", "--", *PYTHON, code)
    assert re.search(
        r"--- SIGUSR1 \{si_signo=SIGUSR1, si_code=SI_USER, si_pid=\d+, si_uid=\d+\} ---",
        result.stdout,
    )
    assert re.search(
        r"rt_sigaction\(SIGUSR1, \{sa_handler=0x[0-9a-f]+, sa_mask=\[\]", result.stdout
    )
    assert re.search(r"kill\(\d+, SIGUSR1\) += 0$", result.stdout, re.MULTILINE)
    assert "+++ exited with 0 +++" in result.stdout


def test_ctrl_c_prints_what_there_is() -> None:
    words = [sys.executable, "-m", "purebpf", "trace", "-e", "getppid"]
    with subprocess.Popen(words, stdout=-1, stderr=-1, text=True) as tracer:
        assert tracer.stdout is not None
        assert tracer.stderr is not None
        assert "TID" in tracer.stdout.readline()
        os.getppid()
        tracer.send_signal(signal.SIGINT)
        output, problem = tracer.communicate(timeout=60)
    assert tracer.returncode == 0
    assert re.search(rf"^ *{os.getpid()} .* getppid\(\) += {os.getppid()}$", output, re.MULTILINE)
    assert "lost: nothing" in problem
