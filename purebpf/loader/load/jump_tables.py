"""Jump tables in the kernel: an instruction array for each, which only one program may use.

The verifier follows `gotox` through arrays that are filled and frozen before it looks; afterwards
they hold where the instructions went (Linux 6.19, commit b4ce5923e780; commit 493d9e0d6083, "bpf,
x86: add support for indirect jumps"). Source: libbpf, create_jt_map; kernel/bpf/bpf_insn_array.c.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from purebpf.abi.bpf import bpf_map_type
from purebpf.errors import KernelError, NotSupportedError
from purebpf.relocate.linked_program import LinkedProgram
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor

__all__ = ["jump_tables"]

_INDEX = struct.Struct("=I")
_VALUE = struct.Struct("=IIII")
"""struct bpf_insn_array_value: the instruction as loaded; translated, jitted, padding."""


@contextmanager
def jump_tables(linked: LinkedProgram) -> Iterator[dict[str, int]]:
    """A descriptor for each jump table of a program, inside the block: loaded, it keeps them.

    Raises:
        NotSupportedError: this kernel has no instruction arrays.
        KernelError: it had no memory or descriptors left; EPERM.
    """
    with ExitStack() as stack:
        fds = {}
        for name, places in linked.jump_tables.items():
            try:
                table = stack.enter_context(_create(len(places)))
            except KernelError as error:
                raise _explain(error, linked, name) from None
            fds[name] = table.fileno()
            for index, place in enumerate(places):
                bpf.map_update_elem(fds[name], _INDEX.pack(index), _VALUE.pack(place, 0, 0, 0))
            bpf.map_freeze(fds[name])
        yield fds


def _create(entries: int) -> Descriptor:
    array = bpf_map_type.BPF_MAP_TYPE_INSN_ARRAY
    return bpf.map_create(array, _INDEX.size, _VALUE.size, entries, map_name=b".jumptables")


def _explain(
    error: KernelError, linked: LinkedProgram, name: str
) -> KernelError | NotSupportedError:
    from purebpf.loader.features import features

    description = f"program {linked.name!r}"
    if features.have_map_type(bpf_map_type.BPF_MAP_TYPE_INSN_ARRAY):
        return KernelError(error.call, error.errno or 0, f"{description}: jump table {name}")
    reason = (
        "a switch in it uses a jump table, and this kernel does not support instruction arrays "
        "(Linux 6.19); compile with -mcpu=v3 or -fno-jump-tables"
    )
    return NotSupportedError(description, reason)
