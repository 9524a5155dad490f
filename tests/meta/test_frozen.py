"""A tool that PyInstaller has frozen finds what purebpf imports by name, and its objects."""

from __future__ import annotations

import subprocess
import sys
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = """
import os, sys
import purebpf

spec = purebpf.read_object(sys.argv[1])
spec = spec.set(target_pid=os.getpid(), target_call=int(sys.argv[2])).only("on_tracepoint")
with purebpf.load(spec) as obj:
    obj.attach()
    for _ in range(23):
        os.getpriority(os.PRIO_PROCESS, 0)
    print("counted", obj.globals["tracepoint_hits"])
"""


def test_the_entry_point_leads_to_the_hook() -> None:
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    name, _, target = config["options.entry_points"]["pyinstaller40"].strip().partition(" = ")
    module, _, function = target.partition(":")
    assert name == "hook-dirs"
    (folder,) = getattr(import_module(module), function)()
    assert Path(folder, "hook-purebpf.py").is_file()


@pytest.mark.slow
@pytest.mark.any_kernel
@pytest.mark.needs("bpf", "tracefs")
def test_a_frozen_tool_counts(tmp_path: Path) -> None:
    """Two minutes, where PyInstaller is installed: it is not a dependency of the tests."""
    pytest.importorskip("PyInstaller", reason="PyInstaller is not installed")
    (tmp_path / "tool.py").write_text(TOOL)
    hooks = ROOT / "purebpf/__pyinstaller"
    command = [sys.executable, "-m", "PyInstaller", "-y", "--log-level", "ERROR", "--paths"]
    command += [str(ROOT), "--additional-hooks-dir", str(hooks), "tool.py"]
    subprocess.run(command, cwd=tmp_path, check=True)
    sample = ROOT / "tests/data/load_attach.bpf.o"
    number = "141" if "aarch64" in sys.implementation._multiarch else "140"
    done = subprocess.run(
        [tmp_path / "dist/tool/tool", sample, number], capture_output=True, text=True, check=True
    )
    assert done.stdout == "counted 23\n"
    assert list(tmp_path.glob("dist/tool/_internal/purebpf/objects/*.bpf.o"))
