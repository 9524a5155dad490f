"""The machine that this process runs on, as far as its stacks can be unwound."""

from __future__ import annotations

import os

from purebpf.errors import NotSupportedError
from purebpf.syscall import proc
from purebpf.unwind.machine import AARCH64, X86_64, Machine
from purebpf.unwind.sent_registers import code_bits

__all__ = ["native_code_bits", "native_machine"]

_MACHINES = {machine.name: machine for machine in (X86_64, AARCH64)}


def native_machine(purpose: str = "unwinding") -> Machine:
    """The machine.

    Args:
        purpose: the feature that needs it.

    Raises:
        NotSupportedError: it is another than x86-64 and arm64.
    """
    name = os.uname().machine
    if name not in _MACHINES:
        raise NotSupportedError(purpose, f"it is for x86-64 and arm64, and this CPU is {name}")
    return _MACHINES[name]


def native_code_bits(purpose: str = "unwinding") -> int:
    """`arm64_code_bits` of bpf_src/include/user_registers.h.

    Args:
        purpose: the feature that needs it.

    Raises:
        NotSupportedError: another machine than x86-64 and arm64.
    """
    machine = native_machine(purpose)
    if machine is not AARCH64:
        return 0
    lines = (proc.maps("self") or "").splitlines()
    starts = [int(line.partition("-")[0], 16) for line in lines]
    return code_bits(machine, max(starts, default=(1 << 48) - 1))
