"""Programs that Nuitka compiled: Python functions that no evaluation loop runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from purebpf.results.model.stack_end import WHOLE
from purebpf.tools.profile import ProfileOptions, Profiler

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "x86_64"),
    pytest.mark.slow,
]

_PROGRAM = """
import threading, zlib
def leaf(n):
    total = 0
    for number in range(n): total += number % 7
    return total
def mid(n):
    zlib.compress(bytes(range(256)) * 200)
    return max([1, 2, 3], key=lambda number: leaf(n))
threading.Thread(target=leaf, args=(1 << 40,), daemon=True).start()
while True: mid(100000)
"""
_CHAINS = {
    ("<module>", "mid", "<lambda>", "leaf"),
    ("_bootstrap", "_bootstrap_inner", "run", "leaf"),
}


@pytest.mark.nightly  # Nuitka takes half a minute
def test_compiled_functions_have_their_callers(tmp_path: Path) -> None:
    (tmp_path / "spin.py").write_text(_PROGRAM)
    command = [sys.executable, "-m", "nuitka", "--quiet", f"--output-dir={tmp_path}"]
    environment = {**os.environ, "NUITKA_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([*command, tmp_path / "spin.py"], check=True, env=environment)
    with subprocess.Popen([tmp_path / "spin.bin"]) as program:
        try:
            time.sleep(1)
            options = ProfileOptions(
                pids=(program.pid,), frequency=499, kernel_stacks=False, duration_s=2
            )
            with Profiler(options) as profiler:
                profiler.wait()
                profile = profiler.stop()
            dump = [sys.executable, "-P", "-m", "purebpf", "dump", str(program.pid)]
            said = subprocess.run(dump, capture_output=True, text=True, check=True).stdout
        finally:
            program.kill()
    ran, whole, chains = 0, 0, set()
    for row in profile.rows():
        frames = [frame for frame in reversed(row.user) if frame.kind == "python"]
        names = tuple(getattr(frame, "name", "").rpartition(".")[2] for frame in frames)
        assert any(names == chain[: len(names)] for chain in _CHAINS), names
        ran += row.weight
        whole += row.weight * (row.marks.end == WHOLE)
        chains.add(names)
    assert chains >= _CHAINS
    assert whole > 0.98 * ran > 0
    assert "python_merge" not in said
    places = [said.index(f"{name} (") for name in ("<lambda>", "mid", "<module>")]
    assert places == sorted(places)
