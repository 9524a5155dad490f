"""`purebpf dump` shows the PHP frames that debug_backtrace() has, in each kind of code."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from purebpf.runtimes.php.frames import BUILT_IN, EVAL, MAIN
from purebpf.tools.dump import session
from purebpf.tools.dump.model import DumpedThread, ProcessDump
from purebpf.tools.dump.render import document, lines
from tests.support.programs import phps

pytestmark = [
    pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf", "x86_64"),
    pytest.mark.skipif(not phps.every(), reason="there is no php"),
]
CACHE = ("-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=16M")
OPTIONS: list[tuple[str, ...]] = [
    (),
    (*CACHE, "-d", "opcache.jit=off"),
    (*CACHE, "-d", "opcache.jit=tracing", "-d", "opcache.jit_hot_func=2"),
    (*CACHE, "-d", "opcache.jit=function"),
]
"""Of php: without opcache, with its shared memory, and with each kind of generated code."""
PROGRAM = Path(__file__).parents[2] / "data/php/calls.php"
FIBER = r"""<?php
function stay() { $at = debug_backtrace(); fwrite(STDOUT, count($at) . "\n"); fgets(STDIN); }
class Loop { function task() { stay(); } }
function run() { $fiber = new Fiber([new Loop, 'task']); $fiber->start(); }
run();
"""


@contextmanager
def started(php: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A php that runs a program; it waits for its input."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*phps.command(php), *arguments],
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def settled(pid: int) -> ProcessDump:
    """A dump in which the thread was not in motion."""
    for _ in range(20):
        dumped = session.dump(pid, kernel=False)
        if not any("ran while" in problem for each in dumped.threads for problem in each.problems):
            return dumped
        time.sleep(0.2)
    raise AssertionError([thread for thread in dumped.threads if thread.problems])


def php_frames(thread: DumpedThread) -> list[tuple[str, str, int]]:
    """The PHP frames of a thread."""
    return [(each.name, each.file, each.line) for each in thread.frames if each.kind == "php"]


def recorded(text: str) -> list[tuple[str, str, int]]:
    """The frames by debug_backtrace(), which has the place of a call with the function called."""
    file, line, calls = json.loads(text)
    frames, place = [], (file, line)
    for name, *called_at in calls:
        spelled = {"eval": EVAL}.get(name, name)
        if name.startswith(("include", "require")):
            spelled = MAIN
        frames.append((spelled, *place))
        place = (called_at[0], called_at[1]) if called_at[0] else (BUILT_IN, 0)
    return [*frames, (MAIN, *place)]


@pytest.mark.parametrize("php", phps.params())
@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "cached", "tracing", "function"])
def test_frames_and_lines_are_those_of_debug_backtrace(php: Path, options: tuple[str, ...]) -> None:
    lengths = []
    for turns, depth in [(0, 30), (0, 55), (2000, 31), (2000, 77)]:
        with started(php, *options, str(PROGRAM), str(turns), str(depth)) as process:
            assert process.stdout is not None
            expected = recorded(process.stdout.readline())
            dumped = settled(process.pid)
        (main,) = dumped.threads[:1]
        found = php_frames(main)
        assert found[0] == ("fgets", BUILT_IN, 0)
        assert found[1:] == expected
        lengths.append(len(found))
    assert min(lengths) > 40


def test_a_fiber_stands_on_its_caller() -> None:
    (php,) = phps.default()
    with started(php, "-r", FIBER.removeprefix("<?php")) as process:
        assert process.stdout is not None
        process.stdout.readline()
        dumped = settled(process.pid)
    names = [name for name, _, _ in php_frames(dumped.threads[0])]
    assert names == ["fgets", "stay", "Loop::task", "Fiber::start", "run", EVAL]


def test_the_engine_itself_is_left_out() -> None:
    (php,) = phps.default()
    with started(php, str(PROGRAM), "0", "5") as process:
        assert process.stdout is not None
        process.stdout.readline()
        dumped = settled(process.pid)
        whole = session.dump(process.pid, kernel=False, native=True)
    kinds = [frame.kind for frame in dumped.threads[0].frames]
    assert kinds == sorted(kinds, reverse=True)  # "user", then "php"
    assert {"zif_fgets", "_start"} <= {frame.name for frame in whole.threads[0].frames}
    assert not any(frame.name == "execute_ex" for frame in whole.threads[0].frames)
    text = "".join(lines(dumped))
    assert f"PHP {dumped.php}\n" in text
    assert f"    Shop\\stay ({PROGRAM}:10)\n" in text
    tree: dict[str, Any] = json.loads(document(dumped))
    assert tree["php"] == dumped.php


def test_a_program_called_php_is_none(tmp_path: Path) -> None:
    fake = tmp_path / "php"
    fake.write_bytes(Path("/bin/sleep").read_bytes())
    fake.chmod(0o755)
    with subprocess.Popen([fake, "1000"]) as process:
        time.sleep(0.2)
        dumped = session.dump(process.pid, kernel=False)
        process.kill()
    assert any("no engine of PHP" in note for note in dumped.notes)
    assert dumped.php == ""
    assert dumped.threads[0].frames


def test_a_worker_of_php_fpm_has_frames(tmp_path: Path) -> None:
    fpm = phps.fpm()
    if fpm is None:
        pytest.skip("there is no php-fpm")
    socket = tmp_path / "fpm.sock"
    (tmp_path / "work.php").write_text("<?php\nfunction handle() {\n  sleep(60);\n}\nhandle();\n")
    (tmp_path / "fpm.conf").write_text(
        f"[global]\nerror_log={tmp_path}/log\ndaemonize=no\n[www]\nuser=root\nlisten={socket}\n"
        "pm=static\npm.max_children=1\n"
    )
    with subprocess.Popen(
        [fpm, "-R", "-n", "-y", tmp_path / "fpm.conf"], stderr=subprocess.DEVNULL
    ) as process:
        try:
            phps.request(socket, tmp_path / "work.php")
            path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            (worker,) = map(int, path.read_text().split())
            dumped = settled(worker)
        finally:
            process.terminate()
    assert php_frames(dumped.threads[0]) == [
        ("sleep", BUILT_IN, 0),
        ("handle", str(tmp_path / "work.php"), 3),
        (MAIN, str(tmp_path / "work.php"), 5),
    ]
