"""Locks of functions whose source has not changed for years, by the types of this kernel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("iced_x86", reason="the extra purebpf[types] is not installed")

from purebpf.dataflow.claims import Claim
from purebpf.dataflow.code import Code
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.observe.instruments.kernel_data import KernelData
from purebpf.observe.instruments.kernel_text import KernelText
from purebpf.symbols.kallsyms import function_ranges
from purebpf.syscall import proc
from purebpf.tools.lock.call_sites import CallSites
from tests.support.host import modules

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")

LOCKS = {
    "vfs_rmdir": ("down_write", "rwsem:W", "inode.i_rwsem"),
    "vfs_unlink": ("down_write", "rwsem:W", "inode.i_rwsem"),
    "d_delete": ("_raw_spin_lock", "spinlock", "inode.i_lock"),
    "__set_current_blocked": ("_raw_spin_lock_irq", "spinlock", "sighand_struct.siglock"),
}
"""fs/namei.c locks the removed inode, fs/dcache.c the inode of a dentry; kernel/signal.c
takes a lock behind `current`, a per-CPU variable."""


@pytest.fixture(scope="module")
def text() -> bytes:
    return proc.kallsyms()


@pytest.fixture(scope="module")
def data() -> Iterator[KernelData]:
    with KernelData() as data:
        yield data


@pytest.mark.parametrize("function", LOCKS)
def test_a_call_of_a_lock_function_names_the_member(
    function: str, text: bytes, data: KernelData
) -> None:
    lock_function, kind, member = LOCKS[function]
    ((start, end),) = function_ranges(text, function)
    ((lock, _),) = function_ranges(text, lock_function)
    with KernelText() as reader:
        code = Code(reader.read(start, end - start), start)
    targets = {one.ip: one.near_branch_target for one in code.instructions}
    sites = [after for after, at in code.calls.items() if targets[at] == lock]
    if not sites:
        pytest.skip(f"{function} has no call of {lock_function} on this kernel")
    names = CallSites(kernel_btf(), data.argument, lambda start: start == lock)
    assert member in {names.name(site, kind) for site in sites}


@pytest.mark.needs("modules")
def test_functions_of_a_module_have_types_by_its_own_btf() -> None:
    modules.load_conntrack()
    listed = proc.kallsyms()
    with KernelData() as data:
        ((start, end),) = function_ranges(listed, "nf_ct_delete")
        claims = [data.code(start).claim(at, is_precise=True) for at in range(start, end)]
        assert data.code(start) is not data.code(function_ranges(listed, "vfs_rmdir")[0][0])
    assert {function for function, _ in claims} == {"nf_ct_delete"}
    structs = {claim.name for _, claim in claims if isinstance(claim, Claim)}
    assert "nf_conn" in structs  # its first parameter
