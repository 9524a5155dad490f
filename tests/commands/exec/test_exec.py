"""Processes that are known: every one is shown, with its arguments and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from purebpf.tools.exec import ExecOptions, Processes
from purebpf.tools.exec.events import Ended, Executed
from purebpf.tools.exec.render import JsonPrinter
from tests.commands.conftest import ROOT
from tests.commands.following import follow
from tests.support.environment import environment, run, start
from tests.support.host.faults import slow_host

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")

PROCESSES = 211 if slow_host() else 1009
PYTHON = (sys.executable, "-S", "-E", "-c")
ROOM = 16384


def events(*command: str, failed: bool = False) -> list[dict[str, Any]]:
    """What is shown of a command; nothing was lost."""
    make = partial(Processes, ExecOptions(command=command, failed=failed))
    return follow(make, JsonPrinter().show, command, notes=("arguments_cut",))


def executed(shown: list[dict[str, Any]]) -> list[list[str]]:
    return [event["arguments"] for event in shown if event["event"] == "exec"]


def test_each_of_many_short_processes_is_shown() -> None:
    script = f"i=0; while [ $i -lt {PROCESSES} ]; do /bin/true $i; i=$((i+1)); done"
    shown = events("sh", "-c", script)
    (first, *_) = shown
    assert first["arguments"] == ["sh", "-c", script]
    starts = [event for event in shown[1:] if event["event"] == "exec"]
    assert [event["arguments"] for event in starts] == [
        ["/bin/true", str(number)] for number in range(PROCESSES)
    ]
    ends = {event["pid"]: event for event in shown if event["event"] == "exit"}
    assert len(ends) == PROCESSES + 1
    for event in starts:
        end = ends[event["pid"]]
        assert (end["status"], end["signal"], end["comm"]) == (0, None, "true")
        assert event["ppid"] == end["ppid"] == first["pid"]
        assert end["time"] > event["time"]
        assert end["lifetime_ns"] > 0


def test_arguments_are_whole_whatever_they_hold() -> None:
    odd = ["", "new\nline", "\x1b[31mred", "quote'\"$", "ä", "x" * 3001]
    assert executed(events("/bin/true", *odd)) == [["/bin/true", *odd]]


def test_bytes_that_are_not_text_are_escaped() -> None:
    code = "import os; os.execv(b'/bin/true', [b'true', b'\\xff\\xfe'])"
    assert executed(events(*PYTHON, code))[1] == ["true", "\\xff\\xfe"]


@pytest.mark.parametrize("over", [-1, 0, 1, 70001])
def test_arguments_beyond_the_room_are_counted(over: int) -> None:
    filler = "y" * (ROOM - len("true\0\0") + over)
    shown = events("true", filler)
    assert shown[0]["cut_bytes"] == max(over, 0)
    assert shown[0]["arguments"][1] == filler[: len(filler) - max(over - 1, 0)]


def test_the_executable_is_the_file_that_runs(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\ntrue\n")
    script.chmod(0o755)
    (shown,) = [
        event
        for event in events("sh", "-c", f"cd {tmp_path} && exec ./script")
        if event["event"] == "exec" and event["path"] == "./script"
    ]
    assert shown["executable"] == os.path.realpath("/bin/sh")


@pytest.mark.parametrize(
    ("script", "status", "name"),
    [("exit 7", 7, None), ("kill -9 $$", None, "SIGKILL"), ("kill -40 $$", None, "signal 40")],
)
def test_the_end_is_a_status_or_a_signal(script: str, status: int | None, name: str | None) -> None:
    shown = events("sh", "-c", f"sh -c '{script}'; true")
    end = next(event for event in shown if event["event"] == "exit")
    assert (end["status"], end["signal"], end["dumped_core"]) == (status, name, False)


THREADS = """
import os, threading, time
for _ in range(13):
    threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
{end}
"""


def test_a_process_of_many_threads_ends_once() -> None:
    shown = events(*PYTHON, THREADS.format(end="os._exit(7)"))
    ends = [event for event in shown if event["event"] == "exit"]
    assert [(end["status"], end["pid"]) for end in ends] == [(7, shown[0]["pid"])]


def test_threads_that_end_at_once_are_one_end() -> None:
    """Many times, as the last two threads may both find that none is alive."""
    code = """
import os, threading
for _ in range(53):
    pid = os.fork()
    if not pid:
        barrier = threading.Barrier(4)
        for _ in range(3):
            threading.Thread(target=barrier.wait).start()
        barrier.wait()
        os._exit(3)
    os.waitpid(pid, 0)
"""
    shown = events(*PYTHON, code)
    ends = Counter(event["pid"] for event in shown if event["event"] == "exit")
    assert len(ends) == 54
    assert set(ends.values()) == {1}


def test_a_thread_that_executes_takes_over_the_process() -> None:
    end = "threading.Thread(target=os.execv, args=('/bin/true', ['true', 'thread'])).start()"
    shown = events(*PYTHON, THREADS.format(end=f"{end}\ntime.sleep(9)"), failed=True)
    assert not shown
    shown = events(*PYTHON, THREADS.format(end=f"{end}\ntime.sleep(9)"))
    assert {event["pid"] for event in shown} == {shown[0]["pid"]}
    assert [event["event"] for event in shown] == ["exec", "exec", "exit"]


def test_failed_has_refused_calls_and_bad_ends(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    code = f"""
import os
for path in ({str(plain)!r}, {str(tmp_path / "missing")!r}, {str(plain / "below")!r}):
    try:
        os.execv(path, ["x"])
    except OSError:
        pass
os.waitpid(os.posix_spawn("/bin/true", ["true"], {{}}), 0)
os.waitpid(os.posix_spawn("/bin/false", ["false"], {{}}), 0)
"""
    shown = events(*PYTHON, code, failed=True)
    assert [(event["path"], event["errno"]) for event in shown if event["event"] == "fail"] == [
        (str(plain), "EACCES"),
        (str(tmp_path / "missing"), "ENOENT"),
        (str(plain / "below"), "ENOTDIR"),
    ]
    assert [event["status"] for event in shown if event["event"] == "exit"] == [1]


def test_a_tree_has_the_children_that_exist_and_those_to_come() -> None:
    """The shell below the target exists already when the run begins; it ends with its process."""
    with subprocess.Popen(
        ["sh", "-c", "sh -c 'echo ready; read line; /bin/true child'; /bin/true parent"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as target:
        assert target.stdin is not None
        assert target.stdout is not None
        assert target.stdout.readline() == "ready\n"
        with Processes(ExecOptions(pids=(target.pid,), tree=True, duration_s=60)) as processes:
            subprocess.run(["/bin/true", "stranger"], check=True)
            print(file=target.stdin, flush=True)
            seen = []
            while not processes.wait():
                seen += processes.drain()
            last = processes.stop()
    seen += last.events
    assert [event.arguments for event in seen if isinstance(event, Executed)] == [
        ("/bin/true", "child"),
        ("/bin/true", "parent"),
    ]
    ends = [event for event in seen if isinstance(event, Ended)]
    assert [end.status for end in ends] == [0, 0, 0, 0]
    assert ends[-1].task.pid == target.pid
    assert not last.loss.any


def test_without_tree_only_the_process_counts() -> None:
    with subprocess.Popen(
        ["sh", "-c", "read line; /bin/true; exec /bin/true itself"],
        stdin=subprocess.PIPE,
        text=True,
    ) as target:
        assert target.stdin is not None
        with Processes(ExecOptions(pids=(target.pid,), duration_s=60)) as processes:
            print(file=target.stdin, flush=True)
            seen = []
            while not processes.wait():
                seen += processes.drain()
            seen += processes.stop().events
    assert [type(event).__name__ for event in seen] == ["Executed", "Ended"]
    assert seen[0].task.pid == target.pid


@pytest.mark.needs("cgroup2")
def test_a_cgroup_is_a_target_and_a_label(tmp_path: Path) -> None:
    from purebpf.loader.host.cgroups import root

    group = Path(str(root()), "purebpf-exec-test")
    group.mkdir()
    try:
        script = f"echo $$ > {group}/cgroup.procs; /bin/true inside"
        session = Processes(ExecOptions(cgroup=str(group), duration_s=60))
        with session as processes:
            subprocess.run(["sh", "-c", script], check=True)
            subprocess.run(["/bin/true", "outside"], check=True)
            seen = list(processes.stop().events)
    finally:
        group.rmdir()
    assert [event.arguments for event in seen if isinstance(event, Executed)] == [
        ("/bin/true", "inside")
    ]
    assert {event.task.cgroup for event in seen} == {"/purebpf-exec-test"}
    assert len(seen) == 3  # the shell ends in there, too


@pytest.mark.needs("strace")
def test_strace_sees_the_same(tmp_path: Path) -> None:
    command = ["sh", "-c", "for i in 1 2 3; do sh -c '/bin/true; exit 3'; done; cat /dev/null"]
    log = tmp_path / "log"
    subprocess.run(
        ["strace", "-f", "-qq", "-s", "9999", "-e", "trace=execve,exit_group", "-o", log, *command],
        check=True,
    )
    lines = log.read_text().splitlines()
    shown = events(*command)
    assert len(executed(shown)) == sum("execve(" in line and line.endswith("= 0") for line in lines)
    codes = Counter(event["status"] for event in shown if event["event"] == "exit")
    assert codes == Counter(
        int(line.partition("exit_group(")[2].partition(")")[0])
        for line in lines
        if "exit_group(" in line
    )


def test_text_is_harmless_on_a_terminal() -> None:
    result = run("exec", "--", "/bin/true", "\x1b]0;title\a", "two\nlines")
    assert result.returncode == 0
    assert result.stdout.count("\n") == 3
    assert "\x1b" not in result.stdout
    assert "two?lines" in result.stdout


def test_ctrl_c_ends_it_with_what_came() -> None:
    with start("exec") as process:
        assert process.stdout is not None
        process.stdout.readline()
        subprocess.run(["/bin/true", "marked-41"], check=True, cwd=ROOT, env=environment())
        line = ""
        while "marked-41" not in line:  # lines come while it runs
            line = process.stdout.readline()
            assert line
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "lost: nothing" in said


@pytest.mark.needs("current_task_btf")
def test_the_table_counts_each_program() -> None:
    """Three starts, seven failures, and the CPU time of two threads."""
    burn = (
        "import threading, time\n"
        "def burn():\n"
        "    until = time.thread_time() + 0.2\n"
        "    while time.thread_time() < until: pass\n"
        "thread = threading.Thread(target=burn)\n"
        "thread.start(); burn(); thread.join()\n"
    )
    loop = "for i in 1 2 3; do /bin/true; done; for i in 1 2 3 4 5 6 7; do /bin/false; done; "
    program = str(Path(sys.executable).resolve())
    script = f'{loop} exec {program} -S -E -c "$0"'
    words = ("exec", "--summary", "--format", "json", "--", "sh", "-c", script, burn)
    shown = run(*words)
    documents = map(json.loads, shown.stdout.splitlines())
    rows = {row["program"]: row for row in documents if "program" in row}
    by_name = {Path(name).name: row for name, row in rows.items()}
    assert (by_name["true"]["starts"], by_name["true"]["failed"]) == (3, 0)
    assert (by_name["false"]["starts"], by_name["false"]["failures"]) == (7, {"status 1": 7})
    python = by_name[Path(program).name]
    assert python["ends"] == 1
    assert 0.4e9 <= python["cpu_ns"] < 10e9
