"""`purebpf vmlinux`: a header that compiles, as bpftool's does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import purebpf
from purebpf import build
from tests.commands.conftest import ROOT

pytestmark = [pytest.mark.needs("clang", "vmlinux_btf"), pytest.mark.any_kernel]

C = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

enum demo_state { IDLE, BUSY };
struct event { struct task_struct *task; enum demo_state state; };
struct event *unused;
u64 seen;

SEC("tp_btf/sched_switch") int BPF_PROG(on_switch, bool preempt, struct task_struct *from)
{
	struct task_struct *parent = bpf_task_from_pid(1);

	if (parent)
		bpf_task_release(parent);
	seen += BPF_CORE_READ(from, mm, exe_file, f_inode, i_ino) + from->se.vruntime;
	return bpf_get_current_task_btf()->pid + BPF_F_USER_STACK;
}
char LICENSE[] SEC("license") = "GPL";
"""


def vmlinux(*arguments: str | Path, cwd: Path = ROOT) -> str:
    command = [sys.executable, "-W", "error", "-m", "purebpf", "vmlinux", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=cwd).stdout


def compile_with(header: str, directory: Path) -> purebpf.ObjectSpec:
    directory.mkdir()
    (directory / "vmlinux.h").write_text(header)
    (directory / "tool.bpf.c").write_text(C)
    return purebpf.read_object(build.compile(directory / "tool.bpf.c", cache=False))


@pytest.mark.needs("bpftool")
def test_a_source_has_the_code_that_it_has_with_the_header_of_bpftool(tmp_path: Path) -> None:
    command = ["bpftool", "btf", "dump", "file", "/sys/kernel/btf/vmlinux", "format", "c"]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "bpf_task_from_pid" not in theirs:  # bpftool writes kfuncs since Linux 6.11
        theirs += "extern struct task_struct *bpf_task_from_pid(s32 p) "
        theirs += '__attribute__((section(".ksyms"), weak));\n'
        theirs += "extern void bpf_task_release(struct task_struct *p) "
        theirs += '__attribute__((section(".ksyms"), weak));\n'
    source = tmp_path / "tool.bpf.c"
    source.write_text(C)
    ours = compile_with(vmlinux("--for", source), tmp_path / "ours")
    reference = compile_with(theirs, tmp_path / "theirs")
    assert {name: function.code for name, function in ours.functions.items()} == {
        name: function.code for name, function in reference.functions.items()
    }
    assert [*ours.externs] == [*reference.externs]


def test_types_of_the_source_are_left_to_it(tmp_path: Path) -> None:
    source = tmp_path / "tool.bpf.c"
    source.write_text(C)
    header = vmlinux("--for", source)
    assert "struct task_struct {" in header
    assert "struct inode {" in header  # by way of members that the source names
    assert "IDLE" not in header
    assert "struct event {" not in header
    assert len(header.splitlines()) < 6000


def test_it_is_written_of_another_kernel(tmp_path: Path) -> None:
    target = ROOT / "tests/data/core/core_loads.target.o"
    header = vmlinux("--btf", target)
    assert header.startswith("#ifndef __VMLINUX_H__\n")
    assert "struct sized {" in header
    assert header.count("#pragma clang attribute") == 2
