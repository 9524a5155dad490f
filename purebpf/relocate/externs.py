"""Writes the places of kernel symbols into instructions.

A variable declared with a type is referred to by its id in the kernel's BTF, which the verifier
turns into its address (a per-CPU variable's into an offset, for bpf_this_cpu_ptr); a variable
declared as `void` by the address itself, about which the verifier knows nothing. A kernel function
is called by its id, and may also be referred to, to test for its existence. A module has separate
ids: its variables come with a descriptor of its BTF, its functions with a place in `fd_array`.

A weak extern that does not exist is the address 0; a call of it is poisoned, since a program that
may call it has tested that address first.
Source: bpf_object__relocate_data() of libbpf; kernel 5.10 (variables:
commit 4976b718c355, "bpf: Introduce pseudo_btf_id"), 5.13 (functions: commit e6ac2450d6de).
"""

from __future__ import annotations

from collections.abc import Callable

from purebpf.abi.instruction import CALL, PSEUDO_BTF_ID, PSEUDO_KFUNC_CALL
from purebpf.relocate.code import Code
from purebpf.spec import ExternSpec
from purebpf.tuples import NamedTuple

__all__ = ["POISONED_KFUNC", "Externs", "ResolvedExtern", "write_extern"]

POISONED_KFUNC = 2002000000
"""The helper number that a call of a missing kernel function becomes, as in libbpf."""


class ResolvedExtern(NamedTuple):
    """The kernel's answer for an extern.

    Attributes:
        address: of an untyped symbol.
        type_id: of the VAR or FUNC, or 0 for an untyped symbol.
        btf_fd: a descriptor of the BTF that has it: 0 is vmlinux's.
        slot: the place of that descriptor in `fd_array`: 0 is vmlinux's.
    """

    address: int = 0
    type_id: int = 0
    btf_fd: int = 0
    slot: int = 0


Externs = Callable[[ExternSpec], ResolvedExtern | None]
"""Says what a kernel has for an extern, or None."""


def write_extern(code: Code, slot: int, extern: ExternSpec, resolved: ResolvedExtern | None) -> str:
    """Make the instruction at `slot` refer to the symbol; returns why it was poisoned, or "".

    Raises:
        ValueError: the instruction is not a call and not an ld_imm64.
    """
    if code.opcode(slot) == CALL:
        if resolved is not None:
            code.set_source(slot, PSEUDO_KFUNC_CALL)
            code.set_offset(slot, resolved.slot)
            code.set_immediate(slot, resolved.type_id)
            return ""
        code.replace_by_call(slot, POISONED_KFUNC)
        return f"it calls {extern.name}(), a kernel function that this kernel does not have"
    if not code.is_load64(slot):
        raise ValueError("is neither for a call nor for an ld_imm64")
    if resolved is not None and resolved.type_id:
        code.set_source(slot, PSEUDO_BTF_ID)
        code.set_immediate(slot, resolved.type_id)
        code.set_immediate(slot + 1, resolved.btf_fd)
    else:
        code.set_load64(slot, resolved.address if resolved is not None else 0)
    return ""
