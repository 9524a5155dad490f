"""Copies a whole hash map by one program, for callers that know that the map does not change.

The batch commands take each bucket's lock, copy it twice, and cost four times as much as walking
through the map does (`bench/reading.py`). bpf_for_each_map_elem() (Linux 5.13, commit 69c087ba6225)
takes no lock: an element that is deleted while the walk is at it may come back in another bucket,
where the walk then goes on. So this is for maps that no program or process changes during the walk.

The program fits the sizes of one map: a `syscall` program (Linux 5.14, commit 79a7f8bdb159); its
callback puts key and value into the next row of an array that this process has mapped.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from purebpf.abi.assembler import R0, R1, R2, R3, R6, R7, R8, R10, Assembler
from purebpf.abi.bpf import BPF_F_MMAPABLE, bpf_map_type, bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.abi.instruction import pack
from purebpf.abi.sections import BPF_F_SLEEPABLE
from purebpf.btf.types.kinds import Kind
from purebpf.errors import KernelError
from purebpf.loader.features import probes
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor
from purebpf.syscall.memory import lasting
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.maps.map_core import Store

__all__ = ["Rows", "copy_rows"]

_TYPES = (bpf_map_type.BPF_MAP_TYPE_HASH, bpf_map_type.BPF_MAP_TYPE_LRU_HASH)
_WORD = 8
_LONGEST_ROW = 4096
_LARGEST = 1 << 30
"""Bytes of rows: the array has room for max_entries, however few there are."""

_R4 = 4


class Rows(NamedTuple):
    """Keys and values side by side.

    Attributes:
        memory: `filled` rows of `stride` bytes, each a key and, at `value_offset`, its value; it
            lasts as long as something refers to it.
    """

    memory: Any
    filled: int
    stride: int
    value_offset: int


def copy_rows(store: Store) -> Rows | None:
    """Every element of a hash at rest; None where it cannot be done like this.

    That is: other maps, values with locks or timers, more than 1 GiB, kernels before 5.14, and
    processes that may not load programs.
    """
    info = store.info
    value_offset = -(-info.key_size // _WORD) * _WORD
    stride = value_offset + -(-info.value_size // _WORD) * _WORD
    size = info.max_entries * stride
    if info.type not in _TYPES or stride > _LONGEST_ROW or size > _LARGEST:
        return None
    array = bpf_map_type.BPF_MAP_TYPE_ARRAY
    try:
        with (
            bpf.map_create(array, 4, stride, info.max_entries, map_flags=BPF_F_MMAPABLE) as rows,
            bpf.map_create(array, 4, _WORD, 1) as number,
            _load_program(store, rows.fileno(), number.fileno(), value_offset) as program,
        ):
            count = bpf.prog_test_run(program.fileno()).retval
            if count > info.max_entries:
                return None
            return Rows(lasting(rows.fileno(), size), count, stride, value_offset)
    except KernelError:
        return None


def _load_program(store: Store, rows: int, number: int, value_offset: int) -> Descriptor:
    code = Assembler()
    callback = code.label()
    code.map(R1, store.elements.fileno())
    code.function(R2, callback)
    code.move(R3, 0)
    code.move(_R4, 0)
    code.call(bpf_func_id.BPF_FUNC_for_each_map_elem)
    code.map_value(R1, number)
    code.load(R0, R1, 0, _WORD)
    code.exit()
    code.place(callback)
    begins = len(code)
    _copy_one(code, rows, number, store, value_offset)
    # Callbacks must be known to be static functions, so both get such a type.
    functions = struct.pack("=4I", 0, _FUNCTION, begins, _FUNCTION)
    with bpf.btf_load(probes.kind_blob(Kind.FUNC)) as types:
        return bpf.prog_load(
            bpf_prog_type.BPF_PROG_TYPE_SYSCALL,
            pack(code.finish()),
            "GPL",
            prog_flags=BPF_F_SLEEPABLE,
            prog_btf_fd=types.fileno(),
            func_info=functions,
            func_info_rec_size=8,
            func_info_cnt=2,
        )


_FUNCTION = 3
"""The function in `kind_blob(Kind.FUNC)`."""


def _copy_one(code: Assembler, rows: int, number: int, store: Store, value_offset: int) -> None:
    """The callback: R2 is a key, R3 its value; 1 ends the walk."""
    present = code.label()
    code.copy(R6, R2)
    code.copy(R7, R3)
    code.map_value(R8, number)
    code.load(R1, R8, 0, _WORD)
    code.store(R10, -_WORD, R1, 4)
    code.alu("+=", R1, 1)
    code.store(R8, 0, R1, _WORD)
    code.map(R1, rows)
    code.copy(R2, R10)
    code.alu("+=", R2, -_WORD)
    code.call(bpf_func_id.BPF_FUNC_map_lookup_elem)
    code.jump("!=", R0, 0, present)
    code.move(R0, 1)
    code.exit()
    code.place(present)
    for source, start, size in (
        (R6, 0, store.info.key_size),
        (R7, value_offset, store.info.value_size),
    ):
        at = 0
        for step in (8, 4, 2, 1):
            while size - at >= step:
                code.load(R1, source, at, step)
                code.store(R0, start + at, R1, step)
                at += step
    code.move(R0, 0)
    code.exit()
