"""Walks in BPF of programs with uprobes: the kernel puts addresses of its own into their stacks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.loader.perf.probe import Probe
from purebpf.loader.perf.probe_event import open_probe
from purebpf.loader.types.task_offsets import uprobe_offsets
from tests.support.programs.stack_walks import LEAF, build, check_counters, own_names, walk_run

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "nm", "x86_64"),
]

_CHAIN = (
    LEAF
    + r"""
STEP void touched(void) { sink++; }
STEP unsigned long inner(unsigned long x) {
  for (int i = 0; i < 1000; i++) touched();
  for (int i = 0; i < 300; i++) x = leaf(x);
  return x;
}
STEP unsigned long jumps(unsigned long x) { return inner(x + 1); }
STEP unsigned long middle(unsigned long x) { return jumps(x * 3) + 1; }
STEP unsigned long outer(unsigned long x) { return middle(x) ^ 5; }
unsigned long (*volatile again)(unsigned long);
STEP unsigned long recurses(unsigned long n) { return n ? again(n - 1) + n : outer(sink) + 1; }
int main(void) { again = recurses; for (;;) sink += recurses(6); }
"""
)
_CALLERS = ("inner", "middle", "outer", *["recurses"] * 7, "main")
"""Of a leaf; jumps() has left the stack before it runs."""


def offsets() -> dict[str, int]:
    """Where this kernel has the addresses that uprobes put others in the place of."""
    return {f"{name}_at": offset for name, offset in uprobe_offsets().items()}


@contextmanager
def probed(program: Path, *functions: str, returns: bool = False) -> Iterator[None]:
    """Have probes at functions, or at their returns, in every process."""
    printed = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    addresses = {
        line.split()[-1]: int(line.split()[0], 16)
        for line in printed.splitlines()
        if len(line.split()) == 3
    }
    name = bytes(program)
    events = [
        open_probe(Probe("uprobe", name, addresses[function], returns=returns))
        for function in functions
    ]
    try:
        yield
    finally:
        for event in events:
            event.close()


def test_a_leaf_that_executes_a_copied_instruction(tmp_path: Path) -> None:
    program = build(tmp_path, _CHAIN)
    with probed(program, "touched"):
        run = walk_run(program, copies_all=True, copies_per_second=0, **offsets())
    check_counters(run)
    late = [each.walked for each in run.late()]
    chains = [own_names(run, program, each.frames) for each in late]
    in_probed = [chain for chain in chains if chain[:1] == ["touched"]]
    assert len(in_probed) > 0.2 * len(late)  # most of the time, the kernel handles the probe
    assert {tuple(chain[1 : 1 + len(_CALLERS)]) for chain in in_probed} == {_CALLERS}
    cut = sum(not each.reason.is_whole for each in late)  # before and behind the copy
    assert cut < 0.05 * len(late)


def test_return_probes_of_callers(tmp_path: Path) -> None:
    program = build(tmp_path, _CHAIN)
    with probed(program, "inner", "jumps", "middle", "recurses", returns=True):
        run = walk_run(program, copies_all=True, copies_per_second=0, **offsets())
    check_counters(run)
    late = [each.walked for each in run.late()]
    chains = [own_names(run, program, each.frames) for each in late]
    in_leaf = [chain for chain in chains if chain[:1] == ["leaf"]]
    assert len(in_leaf) > 0.2 * len(late)
    assert {tuple(chain[1 : 1 + len(_CALLERS)]) for chain in in_leaf} == {_CALLERS}
    # others: in the trampoline itself, and between a breakpoint and its handling, when the kernel
    # has the address behind the breakpoint
    cut = [chain for chain, each in zip(chains, late, strict=True) if not each.reason.is_whole]
    assert len(cut) < 0.1 * len(late)
    assert all(chain[:1] in ([], ["recurses"]) for chain in cut)
