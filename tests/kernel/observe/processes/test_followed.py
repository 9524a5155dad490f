"""`Followed` keeps what all do, and tells a receiver what those did that it knows or asks about."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import closing

import pytest

from purebpf.observe.processes.process_tracker import Followed
from purebpf.symbols.address_spaces import MappedCode
from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.syscall import proc
from purebpf.wire.perf_records import Comm, Exit, Fork

pytestmark = pytest.mark.needs("perf_event")

TRUE = os.path.realpath("/bin/true")


def test_the_receiver_gets_what_processes_did_that_it_knows() -> None:
    told: list[object] = []
    with closing(Followed()) as followed:
        first, second = (subprocess.Popen([TRUE]) for _ in range(2))
        first.wait()
        second.wait()
        followed.drain(told.append, {second.pid})
        assert {record.pid for record in told if isinstance(record, MappedCode)} == {second.pid}
        assert first.pid not in {record.pid for record in told if isinstance(record, Exit)}
        spaces = followed.spaces
        paths = [{m.file.path for m in spaces.files(child.pid)} for child in (first, second)]
    assert TRUE in paths[0], "of a process that is not followed, too, once it is asked about"
    assert paths[0] == paths[1]
    mapped = {record.pid for record in told if isinstance(record, MappedCode)}
    assert mapped == {second.pid}
    ended = {record.pid for record in told if isinstance(record, Exit)}
    assert {first.pid, second.pid} <= ended


def test_a_process_that_is_asked_about_is_followed_from_then_on() -> None:
    told: list[object] = []
    with closing(Followed()) as followed:
        child = subprocess.Popen(["/bin/sh", "-c", "read line"], stdin=subprocess.PIPE)
        until_executed(followed, child.pid)
        assert not told
        followed.drain(told.append)
        followed.ask(child.pid)
        assert isinstance(told[0], Fork)
        child.communicate(b"\n")
        followed.drain(told.append)
    assert [record.pid for record in told if isinstance(record, Exit)] == [child.pid]


def until_executed(followed: Followed, pid: int) -> None:
    """Until the kernel has said that it executed something."""
    end = time.monotonic() + 30
    while proc.comm(pid) != "sh":
        assert time.monotonic() < end
        time.sleep(0.01)
    followed.drain()


def test_children_of_known_processes_are_followed_unless_they_execute_something() -> None:
    told: list[object] = []
    script = f"read a; {TRUE}; (read b; :); :"
    with closing(Followed()) as followed:
        child = subprocess.Popen(["/bin/sh", "-c", script], stdin=subprocess.PIPE)
        until_executed(followed, child.pid)
        followed.ask(child.pid)
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.flush()
        end, before = time.monotonic() + 30, None  # the other child is called "sh" for a moment
        while (living := proc.children(child.pid)) != before or list(map(proc.comm, living)) != [
            "sh"
        ]:
            assert time.monotonic() < end
            before = living
            time.sleep(0.1)
        followed.drain(told.append)
        (subshell,) = proc.children(child.pid)
        child.communicate(b"\n")
    forks = {record.pid for record in told if isinstance(record, Fork)}
    assert forks == {subshell}
    executed = {record.pid for record in told if isinstance(record, Comm) and record.comm == "true"}
    assert not executed


def test_a_look_at_the_next_program_is_not_of_the_one_before() -> None:
    """The process executes between the reading of records and the look at its mappings."""
    command = ["/bin/sh", "-c", "read line; exec /bin/cat"]
    with (
        closing(Followed()) as followed,
        subprocess.Popen(command, stdin=subprocess.PIPE) as child,
    ):
        assert child.stdin is not None
        until_executed(followed, child.pid)
        followed.drain()
        followed.ask(child.pid)
        followed.drain()
        followed._note_anonymous(child.pid)
        executed_ns = time.monotonic_ns()
        child.stdin.write(b"\n")
        child.stdin.flush()
        end = time.monotonic() + 30
        while not (mapped := code_of(child.pid, os.path.realpath("/bin/cat"))):
            assert time.monotonic() < end
            time.sleep(0.03)
        time.sleep(0.03)
        followed._find_copied_code()
        assert followed.look_again_s() < 0.1
        followed.drain()
        before = followed.spaces.earlier(child.pid, executed_ns)
        assert before is not None
        assert mapped[0].file not in {mapping.file for mapping in before.mappings}
        now = followed.spaces.find_current(child.pid, mapped[0].start)
        assert now is not None
        assert now.file.path == mapped[0].file.path
        child.stdin.close()


def code_of(pid: int, path: str) -> list[Mapping]:
    """The executable mappings of a file."""
    return [mapping for mapping in parse_maps(proc.maps(pid) or "") if mapping.file.path == path]
