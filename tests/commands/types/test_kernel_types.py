"""The data of kernel code whose source has not changed for years."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("iced_x86", reason="the extra purebpf[types] is not installed")

from purebpf.btf.types.kinds import Kind
from purebpf.dataflow.claims import Claim
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.symbols.address_spaces import AddressSpaces
from purebpf.symbols.kallsyms import function_ranges
from purebpf.syscall import proc
from purebpf.tools.types.attribute import IN_KERNEL, DataOfPrograms
from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")


def test_samples_of_the_running_kernel_have_types_and_recorded_ones_a_reason() -> None:
    ((start, end),) = function_ranges(proc.kallsyms(), "vfs_rmdir")
    with DataOfPrograms(AddressSpaces(), is_precise=True, is_live=True) as data:
        answers = [data.find(0, address) for address in range(start, end)]
    members = {
        (answer.claim.name, answer.claim.member.partition(".")[0])
        for answer in answers
        if isinstance(answer.claim, Claim)
    }
    assert {answer.function for answer in answers} == {"vfs_rmdir"}
    # of its parameters, and of the inodes that these lead to
    assert {("dentry", "d_inode"), ("inode", "i_op")} <= members
    assert not {"bytes", "void"} & {name for name, _ in members}
    with DataOfPrograms(AddressSpaces(), is_precise=True) as data:
        assert data.find(0, start).claim == IN_KERNEL


OPENS = """
import os, time
end = time.process_time() + 2
while time.process_time() < end:
    for _ in range(1000):
        os.close(os.open("/etc/passwd", os.O_RDONLY))
        os.stat("/etc/passwd")
"""


@pytest.mark.needs("perf_event")
def test_slab_caches_judge_the_types_of_kernel_code() -> None:
    command = [sys.executable, "-m", "purebpf", "types", "-F", "1999", "--format", "json", "--"]
    run = subprocess.run(
        [*command, sys.executable, "-c", OPENS],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    slabs = json.loads(run.stdout.splitlines()[-1])["slabs"]
    if not kernel_btf().find("bpf_get_kmem_cache", Kind.FUNC):  # before Linux 6.13
        assert slabs == {"right": 0, "wrong": 0, "typed": 0}
        return
    assert slabs["right"] > 10, (slabs, run.stderr)
    assert slabs["wrong"] <= slabs["right"] // 20, slabs
