"""The place of an arena's global variables: its last pages, so that the first ones are free.

Programs reserve the first page of an arena to catch null pointers (sched_ext's library), so libbpf
1.7 and later put variables at the end where the kernel can. Until commit 12a1fe6e12db
("bpf/verifier: Do not limit maximum direct offset into arena map") the verifier takes no offset
beyond 512 MiB; variables of an arena that is larger then stay at its start.

Imported only for an object that has an arena.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from typing import TYPE_CHECKING

from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.abi.instruction import EXIT, LD_IMM64, PSEUDO_MAP_VALUE, Instruction, pack
from purebpf.errors import KernelError
from purebpf.loader.features import probes
from purebpf.loader.features.feature import Feature, answer_refusal, remember
from purebpf.spec import MapSpec, ObjectSpec
from purebpf.syscall import bpf
from purebpf.syscall.command import Log

if TYPE_CHECKING:
    from purebpf.loader.maps.map import Map

__all__ = ["place_variables"]

_ARENA = bpf_map_type.BPF_MAP_TYPE_ARENA
_SHORT_LIMIT = 1 << 29
"""BPF_MAX_VAR_OFF, in bytes."""
_TOO_FAR = "direct value offset of"
_LOG_SIZE = 4096


def place_variables(spec: ObjectSpec, given: Mapping[str, Map]) -> ObjectSpec:
    """`spec`, with the place of the variables in its arena.

    `given` are maps that stand for some of the object's: an arena may be larger than declared.
    """
    placed = {
        name: map_spec._replace(contents_offset=_start(map_spec, given.get(name)))
        for name, map_spec in spec.maps.items()
        if map_spec.type == _ARENA and map_spec.contents
    }
    return spec._replace(maps={**spec.maps, **placed}) if placed else spec


def _start(arena: MapSpec, given: Map | None) -> int:
    pages = given.max_entries if given is not None else arena.max_entries
    needed = -(-len(arena.contents) // mmap.PAGESIZE)
    start = max(pages - needed, 0) * mmap.PAGESIZE
    return start if start < _SHORT_LIMIT or have_far_offsets() else 0


@remember
def have_far_offsets() -> Feature:
    """Test if an ld_imm64 may address a byte beyond 512 MiB of an arena (commit 12a1fe6e12db).

    Such an offset into a small array is refused either way: the log says which rule was broken.
    """
    name = "offsets beyond 512 MiB in ld_imm64"
    log = Log(_LOG_SIZE, 1)
    try:
        with probes.make_map(bpf_map_type.BPF_MAP_TYPE_ARRAY) as array:
            load = Instruction(LD_IMM64, 1, PSEUDO_MAP_VALUE, 0, array.fileno())
            code = [load, Instruction(0, 0, 0, 0, 2 * _SHORT_LIMIT), Instruction(EXIT, 0, 0, 0, 0)]
            socket_filter = bpf_prog_type.BPF_PROG_TYPE_SOCKET_FILTER
            bpf.prog_load(socket_filter, pack(code), "GPL", log=log).close()
    except KernelError as error:
        if not log.text() or _TOO_FAR in log.text():
            return answer_refusal(name, error)
    return Feature(name, supported=True, reason="the verifier accepted the program")
