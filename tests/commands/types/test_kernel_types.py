"""The data of kernel code whose source has not changed for years."""

from __future__ import annotations

import pytest

pytest.importorskip("iced_x86", reason="the extra purebpf[types] is not installed")

from purebpf.dataflow.claims import Claim
from purebpf.symbols.address_spaces import AddressSpaces
from purebpf.symbols.kallsyms import function_ranges
from purebpf.syscall import proc
from purebpf.tools.types.attribute import IN_KERNEL, DataOfPrograms

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
