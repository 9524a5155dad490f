"""Allocators that are left by an exception: the program goes on, and what follows is counted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from purebpf.tools.mem import MemOptions, Memory, MemoryUse

pytestmark = pytest.mark.needs(
    "bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "g++", "x86_64", "atomic_fetch"
)

THROWS, EACH, DEEPER = 31, 43, 47
PROGRAM = f"""
#include <cstdio>
#include <cstdlib>
#include <new>
#define OUT __attribute__((noinline, noclone))
static void *volatile kept;
OUT void fails(std::size_t size) {{ kept = ::operator new(size); }}
OUT void keeps() {{ for (int i = 0; i < {EACH}; i++) kept = ::operator new(1024); }}
OUT void deeper(int left) {{
	volatile char room[512]; room[left] = 1;
	if (left) deeper(left - 1); else for (int i = 0; i < {DEEPER}; i++) kept = malloc(2048);
	room[left + 1] = 2;
}}
OUT void clears() {{ for (int i = 0; i < {EACH}; i++) kept = calloc(1, 4000); }}
int main() {{
	std::puts("ready");
	std::fflush(stdout);
	getchar();
	int caught = 0;
	for (int i = 0; i < {THROWS}; i++)
		try {{ fails((std::size_t)1 << 62); }} catch (const std::bad_alloc &) {{ caught++; }}
	keeps();
	deeper(5);
	clears();
	std::printf("%d\\n", caught);
	std::fflush(stdout);
}}
"""


def measured(program: Path) -> tuple[MemoryUse, str]:
    pipe = subprocess.PIPE
    with subprocess.Popen([program], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"  # the allocators are mapped
        with Memory(MemOptions(pids=(process.pid,))) as memory:
            said, _ = process.communicate("\n", timeout=100)
            use = memory.stop()
        assert process.returncode == 0
    return use, said.strip()


@pytest.mark.parametrize("linked", ["-static", "-pthread", "-l:libjemalloc.so.2"])
def test_operator_new_may_throw(tmp_path, linked):
    (tmp_path / "x.cc").write_text(PROGRAM)
    words = ["g++", "-O1", "-w", "-o", tmp_path / "x", tmp_path / "x.cc", linked]
    if subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip(f"this machine cannot link with {linked}")
    use, said = measured(tmp_path / "x")
    assert said == str(THROWS)
    leaves: dict[str, int] = {}
    nbytes: dict[str, int] = {}
    for row in use.allocated.rows():
        names = {frame.name.partition("(")[0] for frame in row.user if hasattr(frame, "name")}
        for name in ("keeps", "deeper", "clears", "fails"):
            if name in names:
                leaves[name] = leaves.get(name, 0) + row.marks.times
                nbytes[name] = nbytes.get(name, 0) + row.weight
    assert leaves.pop("fails", 0) in (0, THROWS)  # the exceptions themselves
    nbytes.pop("fails", 0)
    assert leaves == {"keeps": EACH, "deeper": DEEPER, "clears": EACH}
    assert nbytes == {"keeps": EACH * 1024, "deeper": DEEPER * 2048, "clears": EACH * 4000}
