"""--lines as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.kernel.symbol_programs import compile_program

_SOURCE = r"""
static volatile unsigned sink;
static inline __attribute__((always_inline)) unsigned inner(unsigned x) {
  for (int i = 0; i < 1000; i++)
    x = x * 1103515245 + 12345;
  sink = x;
  return x;
}
__attribute__((noinline)) unsigned outer(unsigned x) {
  return inner(x) + 1;
}
int main(void) {
  for (int i = 0; i < 300000; i++) outer(1);
}
"""


def _run(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "purebpf", module, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True)


@pytest.mark.needs("bpf", "perf_event", "gcc", "addr2line")
def test_a_profile_with_lines_and_one_that_gets_them_later(tmp_path):
    program = compile_program(tmp_path / "busy", "-g", "-fno-omit-frame-pointer", source=_SOURCE)
    saved = tmp_path / "saved.json"
    _run("profile", "-F", "199", "-o", saved, "--", program)
    assert all("line" not in frame for frame in json.loads(saved.read_text())["frames"])
    lined = tmp_path / "lined.json"
    _run("convert", saved, "--lines", "-o", lined)
    frames = json.loads(lined.read_text())["frames"]
    own = [frame for frame in frames if frame.get("module") == str(program)]  # and not ld.so's
    inlined = [frame for frame in own if frame["kind"] == "inlined"]
    assert {(frame["name"], frame["file"]) for frame in inlined} == {
        ("inner", str(tmp_path / "busy.c"))
    }
    assert {frame["line"] for frame in inlined} <= {4, 5, 6}
    assert {frame["line"] for frame in own if frame.get("name") == "outer"} <= {9, 10, 11}
    text = _run("profile", "-F", "199", "--layout", "bcc", "--lines", "--", program).stdout
    assert "    inner (inlined) [busy] busy.c:" in text
    assert "    outer+0x" in text
