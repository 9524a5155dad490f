"""`purebpf dump` shows the Ruby frames that Thread#backtrace has, in each kind of code."""

from __future__ import annotations

import ast
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from purebpf.observe.runtimes.ruby import ruby_process
from purebpf.runtimes.ruby.frames import BUILT_IN
from purebpf.runtimes.ruby.ruby_file import RubyFile
from purebpf.symbols.elf_image import ElfImage
from purebpf.tools.dump import session
from purebpf.tools.dump.model import DumpedThread, ProcessDump
from purebpf.tools.dump.render import document, lines
from tests.support.programs import rubies

pytestmark = [
    pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf", "x86_64"),
    pytest.mark.skipif(not rubies.every(), reason="there is no ruby"),
]
PROGRAM = Path(__file__).parents[2] / "data/ruby/calls.rb"
OPTIONS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "yjit": ("--yjit", "--yjit-call-threshold=2"),
}
FIBER = """
def stay = ($stdout.puts "ready"; $stdout.flush; $stdin.gets)
def work = stay
def run = Fiber.new { work }.resume
run
"""
Frame = tuple[str, str, int]


@contextmanager
def started(ruby: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A ruby that runs a program; it waits for its input."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*rubies.command(ruby), *arguments],
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
    """A dump in which no thread was in motion."""
    for _ in range(20):
        dumped = session.dump(pid, kernel=False)
        if not any("ran while" in problem for each in dumped.threads for problem in each.problems):
            return dumped
        time.sleep(0.2)
    raise AssertionError([thread for thread in dumped.threads if thread.problems])


def ruby_frames(thread: DumpedThread) -> list[Frame]:
    """The Ruby frames of a thread."""
    return [(each.name, each.file, each.line) for each in thread.frames if each.kind == "ruby"]


def placed(frames: Sequence[Frame]) -> list[Frame]:
    """Frames as Ruby says them: a method of C is where it is called."""
    found: list[Frame] = []
    for name, file, line in reversed(frames):
        place = found[-1][1:] if file == BUILT_IN and found else (file, line)
        found.append((name, *place))
    return found[::-1]


@pytest.mark.parametrize("ruby", rubies.params())
@pytest.mark.parametrize("kind", OPTIONS)
def test_frames_and_lines_are_those_of_the_backtrace(ruby: Path, kind: str) -> None:
    if not has_option(ruby, kind):
        pytest.skip(f"this ruby has no --{kind}")
    number = 0
    for turns, depth in [(0, 31), (0, 66), (200, 35), (200, 95)]:
        with started(ruby, *OPTIONS[kind], str(PROGRAM), str(turns), str(depth), "3") as process:
            assert process.stdout is not None
            said = [ast.literal_eval(process.stdout.readline()) for _ in range(4)]
            time.sleep(0.3)
            dumped = settled(process.pid)
        expected = {name: [tuple(each) for each in calls] for name, calls in said}
        named = {thread.name: thread for thread in dumped.threads}
        main = dumped.threads[0]
        assert not any("_merge" in one for each in dumped.threads for one in each.problems)
        for name, calls in expected.items():
            found = placed(ruby_frames(named[name] if name else main))
            wait, stay = found[0][0], found[1]
            assert wait.rpartition("#")[2] in ("gets", "sleep")
            assert stay[1] == str(PROGRAM)
            assert found[2:] == calls
            number += len(found)
    assert number > 500


@pytest.mark.parametrize("ruby", rubies.params())
def test_a_fiber_has_its_own_frames(ruby: Path) -> None:
    with started(ruby, "-e", FIBER) as process:
        assert process.stdout is not None
        process.stdout.readline()
        dumped = settled(process.pid)
    found = [(name, line) for name, file, line in ruby_frames(dumped.threads[0]) if file == "-e"]
    assert found == [("stay", 2), ("work", 3), ("block in run", 4)]


def test_the_interpreter_itself_is_left_out() -> None:
    (ruby,) = rubies.default()
    with started(ruby, str(PROGRAM), "0", "5") as process:
        assert process.stdout is not None
        process.stdout.readline()
        dumped = settled(process.pid)
        whole = session.dump(process.pid, kernel=False, native=True)
    assert all(each.kind == "ruby" for each in dumped.threads[0].frames[1:])
    assert dumped.threads[0].problems == ()
    assert {"rb_io_gets", "_start"} & {frame.name for frame in whole.threads[0].frames}
    assert not any(frame.name == "rb_vm_exec" for frame in whole.threads[0].frames)
    text = "".join(lines(dumped))
    assert f"Ruby {dumped.ruby}\n" in text
    assert f"    stay ({PROGRAM}:11)\n" in text
    tree: dict[str, Any] = json.loads(document(dumped))
    assert tree["ruby"] == dumped.ruby


def test_the_loop_is_found_by_an_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a file has a symbol of the loop, the search without it finds the same."""
    (ruby,) = rubies.default()
    with started(ruby, str(PROGRAM), "0", "5") as process:
        assert process.stdout is not None
        process.stdout.readline()
        with_symbol = ruby_process.find_ruby(process.pid)
        monkeypatch.setattr(ruby_process, "_known", {})
        read_file = ruby_process.read_ruby_file

        def without(image: ElfImage) -> RubyFile | None:
            file = read_file(image)
            return None if file is None else file._replace(loop=())

        monkeypatch.setattr(ruby_process, "read_ruby_file", without)
        found = ruby_process.find_ruby(process.pid)
        assert found is not None
        assert with_symbol is not None
        assert found.loop == with_symbol.loop
        assert found.loop
        found.close()
        with_symbol.close()


def test_a_program_called_ruby_is_none(tmp_path: Path) -> None:
    fake = tmp_path / "ruby"
    fake.write_bytes(Path("/bin/sleep").read_bytes())
    fake.chmod(0o755)
    with subprocess.Popen([fake, "1000"]) as process:
        time.sleep(0.2)
        dumped = session.dump(process.pid, kernel=False)
        process.kill()
    assert any("no interpreter of Ruby" in note for note in dumped.notes)
    assert dumped.ruby == ""
    assert dumped.threads[0].frames


def has_option(ruby: Path, kind: str) -> bool:
    """Return True if a ruby runs with a compiler: some are built without it, and only warn."""
    if kind == "plain":
        return True
    code = f"exit RubyVM::{kind.upper()}.enabled?"
    line = [*rubies.command(ruby), *OPTIONS[kind], "-e", code]
    return subprocess.run(line, stderr=subprocess.DEVNULL, check=False).returncode == 0
