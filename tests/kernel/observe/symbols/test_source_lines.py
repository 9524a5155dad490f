"""Lines of a real program, by each of the tools."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from purebpf.observe.symbols.source_lines import LineTool, SourceLines, find_tool
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.results import Labels, Profile
from purebpf.results.shape.lines import wanted, with_lines
from purebpf.symbols.frame import FileOffset, Frame
from tests.kernel.symbol_programs import compile_program, running

_SOURCE = r"""
#include <stdio.h>
#include <unistd.h>
static volatile int sink;
static inline __attribute__((always_inline)) void inner(int x) {
  sink = x;
}
__attribute__((noinline)) void outer(int x) {
  inner(x + 1);
}
int main(void) {
  printf("outer %p\n", outer);
  fflush(stdout);
  outer(1);
  char byte;
  return read(0, &byte, 1) < 0;
}
"""
_INNER, _OUTER = 6, 9


@pytest.fixture
def program(tmp_path) -> Path:
    return compile_program(tmp_path / "program", "-g", "-Wl,--build-id=sha1", source=_SOURCE)


def _tool(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LineTool:
    folder = tmp_path / "bin"
    folder.mkdir()
    for path in os.environ["PATH"].split(":"):
        if (target := Path(path) / name).exists():
            (folder / name).symlink_to(target)
            break
    monkeypatch.setenv("PATH", str(folder))
    found = find_tool()
    assert found is not None
    assert Path(found.path).name == name
    return found


def _named(program: Path, source: SourceLines, *, delete: bool = False) -> list[Frame]:
    """The frames of the stores to `sink`, with lines."""
    with running(program, functions=1) as child:
        if delete:
            program.unlink()
        start = child.functions["outer"]
        found = Symbolizer().user(child.pid, range(start, start + 12))
        profile = Profile()
        for entry in found:
            profile.add((entry,), (), 1, Labels("program", child.pid))
        answers = {
            module: source.of(*module, asked.places, tuple(asked.pids))
            for module, asked in wanted(profile).items()
        }
    rows = with_lines(profile, answers).rows()
    return [entry for row in rows for entry in row.user]


@pytest.mark.needs("gcc")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("llvm-symbolizer", marks=pytest.mark.needs("llvm-symbolizer")),
        pytest.param("addr2line", marks=pytest.mark.needs("addr2line")),
    ],
)
@pytest.mark.parametrize("where", ["itself", "a debug file"])
def test_lines_and_inlined_functions(program, name, where, monkeypatch, tmp_path):
    if where == "a debug file":
        debug = tmp_path / ".debug" / "program.debug"
        debug.parent.mkdir()
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
        subprocess.run(["objcopy", "-S", f"--add-gnu-debuglink={debug}", program], check=True)
    source = SourceLines(_tool(name, monkeypatch, tmp_path), 60)
    found = {
        (frame.name, frame.kind, Path(frame.file).name, frame.line)
        for frame in _named(program, source)
    }
    assert ("inner", "inlined", "program.c", _INNER) in found
    assert ("outer", "user", "program.c", _OUTER) in found
    assert not source.without


@pytest.mark.needs("gcc", "llvm-symbolizer")
@pytest.mark.parametrize("instead", [None, b"", b"\x7fELF of another build"])
def test_a_program_that_was_deleted_or_replaced_while_it_runs(program, instead, monkeypatch):
    tool = find_tool()
    assert tool is not None
    source = SourceLines(tool, 60)
    if instead is not None:
        unlink = Path.unlink
        monkeypatch.setattr(Path, "unlink", lambda path: (unlink(path), path.write_bytes(instead)))
    found = {(frame.name, frame.line) for frame in _named(program, source, delete=True)}
    assert {("inner", _INNER), ("outer", _OUTER)} <= found
    assert source.gone == []


@pytest.mark.needs("gcc", "llvm-symbolizer")
def test_a_file_without_lines_or_another_one_by_now_is_named(program):
    tool = find_tool()
    assert tool is not None
    source = SourceLines(tool, 60)
    subprocess.run(["strip", "-g", program], check=True)
    assert all(not frame.file for frame in _named(program, source))
    assert source.of("/nowhere", "", [FileOffset(1)], ()) == {}
    assert source.of("/proc/self/exe", "ab", [FileOffset(1)], ()) == {}
    assert source.of("/a\0b", "", [FileOffset(1)], ()) == {}
    assert source.without == [str(program)]
    assert source.gone == ["/nowhere", "/proc/self/exe", "/a\0b"]


@pytest.mark.needs("gcc")
def test_a_tool_that_does_not_end_is_ended(program):
    script = (
        "read address\n"
        'printf "%s\\nouter\\nhalf.c:1\\n" $address; read address; printf "%s\\n" $address\n'
        "exec sleep 1000\n"
    )
    source = SourceLines(LineTool("/bin/sh", ("-c", script)), 2)
    frames = _named(program, source)
    assert [frame.line for frame in frames if frame.file] == [1]
    assert source.of(str(program), frames[0].build_id, [FileOffset(1)], ()) == {}
    assert source.unfinished == [str(program)] * 2
    assert not re.search(r"sleep\0+1000\0", _children())


def _children() -> str:
    pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return "".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in pids)


def test_without_a_tool_one_sentence_and_the_names(monkeypatch, capsys):
    from purebpf.cli.source_info import add_lines

    monkeypatch.setenv("PATH", "/nowhere")
    profile = Profile("title")
    assert add_lines(profile, lines=True) is profile
    assert "needs llvm-symbolizer or addr2line" in capsys.readouterr().err
