"""`--build` writes one file that runs a script without purebpf."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf", "tracefs"),
    pytest.mark.any_kernel,  # guests before 5.12 lack atomic exchange
    pytest.mark.skipif(
        "PUREBPF_NIGHTLY" not in os.environ, reason="packs 1.4 MB: PUREBPF_NIGHTLY=1 runs it"
    ),
]

SCRIPT = """tracepoint:syscalls:sys_enter_getppid {
  @[kstack(1), str($1)] = count();
  printf("%s %d\\n", probe, getopt("size", 10, "the size")); exit();
}
interval:ms:1 { @timer = 1; }
begin { @t = tseries(1, 1s, 3); }
"""


def run(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a built file with a Python that has no packages."""
    command = [sys.executable, "-I", "-S", str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")


def test_a_built_file_runs_alone_and_getopt_is_its_help(tmp_path: Path) -> None:
    source, built = tmp_path / "tool.bt", tmp_path / "tool.pyz"
    source.write_text(SCRIPT)
    command = [sys.executable, "-m", "purebpf", "script", "--build", str(built), str(source)]
    subprocess.run(command, check=True)
    assert os.access(built, os.X_OK)

    assert "  --size=10                the size\n" in run(built, "--help").stdout
    caller = f"{sys.executable} -c 'import os; [os.getppid() for i in range(9)]'"
    done = run(built, "-c", caller, "-q", "--", "--size=7", "word")
    assert "tracepoint:syscalls:sys_enter_getppid 7\n" in done.stdout, done
    assert ", word]: " in done.stdout, done
    wrong = run(built, "--length=7")
    assert wrong.returncode == 1
    assert "unexpected program command line options: --length" in wrong.stderr


def test_a_built_file_has_the_walk_of_stacks_only_for_scripts_with_stacks(tmp_path: Path) -> None:
    point = "tracepoint:syscalls:sys_enter_getppid /pid == cpid/"
    sizes = []
    work = tmp_path / "work.py"
    work.write_text("import os\ndef ask(): os.getppid()\nfor i in range(9): ask()\n")
    for key in ("pid", "ustack"):
        source, built = tmp_path / f"{key}.bt", tmp_path / f"{key}.pyz"
        source.write_text(f"{point} {{ @[{key}] = count(); }}")
        command = [sys.executable, "-m", "purebpf", "script", "--build", str(built), str(source)]
        subprocess.run(command, check=True)
        sizes.append(built.stat().st_size)
        done = run(built, "-q", "-c", f"{sys.executable} -S {work}", "--")
        assert ("ask (" in done.stdout) == (key == "ustack"), done
        assert "]: 9\n" in done.stdout, done
    assert sizes[1] - sizes[0] > 50_000


def test_a_wrong_script_is_not_built(tmp_path: Path) -> None:
    source, built = tmp_path / "tool.bt", tmp_path / "tool.pyz"
    source.write_text("begin { print(; }")
    command = [sys.executable, "-m", "purebpf", "script", "--build", str(built), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "tool.bt:1:" in done.stderr
    assert not built.exists()
