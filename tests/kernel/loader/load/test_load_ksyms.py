"""Kernel symbols in the kernel: addresses, variables, functions, and what is missing."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

import purebpf
from purebpf.btf.types.kinds import Kind
from purebpf.loader.load.kernel_types import KernelTypes
from purebpf.loader.types import btf_modules
from purebpf.syscall import proc

DATA = Path(__file__).parents[3] / "data"
HAS_RCU_LOCK = bool(
    Path("/sys/kernel/btf/vmlinux").exists()
    and purebpf.kernel_btf().find("bpf_rcu_read_lock", Kind.FUNC)
)

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")


def address(name: str) -> int:
    lines = Path("/proc/kallsyms").read_text().splitlines()
    return next(int(line.split()[0], 16) for line in lines if line.split()[2] == name)


def wait_for(loaded: purebpf.Object, field: str) -> None:
    """Sleep, which switches tasks, until the program has run."""
    for _ in range(1000):
        if getattr(loaded.globals["seen"], field):
            return
        time.sleep(0.001)
    pytest.fail(f"{field} is still 0")


def test_symbols_without_a_type_are_addresses():
    with purebpf.load(DATA / "load_ksyms.bpf.o") as loaded:
        with loaded.programs["use_symbols"].attach():
            wait_for(loaded, "address")
        seen = loaded.globals["seen"]
        assert seen.address == address("schedule")
        assert (seen.variable, seen.symbol) == (0, 0)


def test_functions_are_called_where_they_exist():
    with purebpf.load(DATA / "load_ksyms.bpf.o") as loaded:
        with loaded.programs["use_functions"].attach():
            if HAS_RCU_LOCK:
                wait_for(loaded, "locked")
            else:
                time.sleep(0)
        assert loaded.globals["seen"].function == 0


@pytest.mark.needs("kernel_variables")
def test_variables_are_read_on_each_cpu():
    with purebpf.load(DATA / "load_kernel_variables.bpf.o") as loaded:
        with loaded.programs["read_variables"].attach():
            wait_for(loaded, "runs")
        seen = loaded.globals["seen"]
        assert seen.own == seen.first == seen.runs, "each CPU's run queue has that CPU's number"
        assert (seen.active & ~1, seen.beyond) == (0, 0)


def test_a_declaration_may_have_a_suffix_of_its_own():
    with purebpf.load(DATA / "load_kfunc_flavours.bpf.o") as loaded:
        with loaded.programs["use_flavours"].attach():
            if HAS_RCU_LOCK:
                wait_for(loaded, "locked")
        assert loaded.globals["seen"].other_type == 0, "declared with another type: as good as none"


def test_a_call_of_a_missing_function_is_explained():
    spec = purebpf.read_object(DATA / "load_ksyms.bpf.o").only("call_what_is_not_there")
    with pytest.raises(purebpf.VerifierError) as caught:
        purebpf.load(spec)
    assert caught.value.poisoned == (
        "it calls no_such_function(), a kernel function that this kernel does not have"
    )
    assert "load_ksyms.bpf.c:" in caught.value.source


@pytest.mark.parametrize(
    ("program", "symbol", "problem"),
    [
        ("call_it", "no_such_function", "call_it needs it, this kernel has no such symbol"),
        ("read_it", "no_such_variable", "read_it needs it, this kernel has no such symbol"),
        ("take_its_address", "no_such_symbol", "take_its_address needs it"),
        pytest.param(
            "mistake_it",
            "bpf_prog_active",
            "declared as struct unlike, but this kernel's is int",
            marks=pytest.mark.needs("kernel_variable_types"),
        ),
    ],
)
def test_what_is_missing_and_not_weak_is_named(program: str, symbol: str, problem: str):
    spec = purebpf.read_object(DATA / "elf_bad_ksym.bpf.o").only(program)
    with pytest.raises(purebpf.LinkError, match=problem) as caught:
        purebpf.load(spec)
    assert caught.value.symbol == symbol


FORWARD = """
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct sock;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

SEC("?raw_tp/sched_switch")
int call_it(void *context)
{
	return tcp_reno_undo_cwnd((void *)0);
}
"""


@pytest.mark.needs("clang", "struct_ops")
def test_a_forward_declaration_is_named(tmp_path: Path):
    (tmp_path / "forward.bpf.c").write_text(FORWARD)
    headers = f"/usr/include/{os.uname().machine}-linux-gnu"
    command = ["clang-19", "-g", "-O2", "-target", "bpf", f"-I{headers}", "-c", "forward.bpf.c"]
    subprocess.run([*command, "-o", "forward.bpf.o"], check=True, cwd=tmp_path)
    spec = purebpf.read_object(tmp_path / "forward.bpf.o").only("call_it")
    with pytest.raises(purebpf.LinkError) as caught:
        purebpf.load(spec)
    assert str(caught.value).endswith(
        "this kernel's is u32 (struct sock *) (/sys/kernel/btf/vmlinux). "
        "`struct sock;` is a forward declaration: define it, without members if none is used "
        "(`struct sock {};`)"
    )


def test_hidden_and_ambiguous_addresses_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    spec = purebpf.read_object(DATA / "load_ksyms.bpf.o").only("use_symbols")
    kallsyms = tmp_path / "kallsyms"
    monkeypatch.setattr(proc, "KALLSYMS", str(kallsyms))
    kallsyms.write_text("0000000000000000 T schedule\n")
    with pytest.raises(purebpf.NotSupportedError, match=r"shows zeros: kernel\.kptr_restrict"):
        purebpf.load(spec)
    kallsyms.write_text("ffffffff81000000 t schedule\nffffffff82000000 t schedule\n")
    with pytest.raises(purebpf.LinkError, match="several kernel symbols have this name"):
        purebpf.load(spec)


def test_modules_are_not_read_for_what_vmlinux_has(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(btf_modules, "_read_all", lambda: pytest.fail("read"))
    spec = purebpf.read_object(DATA / "load_ksyms.bpf.o")
    with KernelTypes(spec) as types:
        assert types.extern(spec.externs["schedule"]) is not None
        assert types.fd_array == b""
