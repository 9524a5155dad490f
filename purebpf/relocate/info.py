"""The tables that tell the kernel about a linked program: its functions and its source lines.

The kernel takes a table that covers every function, in order, or none at all. In the file offsets
are bytes, for the kernel they are instructions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from purebpf.abi.instruction import INSN_SIZE
from purebpf.spec import FunctionSpec

Placed = Iterable[tuple[int, FunctionSpec]]
"""Functions with the instruction each starts at, ascending."""


def func_info(functions: Placed, byteorder: str) -> bytes:
    """An array of struct bpf_func_info; b"" when a function has no BTF FUNC."""
    record = struct.Struct("<II" if byteorder == "little" else ">II")
    records = []
    for start, function in functions:
        if not function.type_id:
            return b""
        records.append(record.pack(start, function.type_id))
    return b"".join(records)


def line_info(functions: Placed, byteorder: str) -> bytes:
    """An array of struct bpf_line_info; b"" when a function's first instruction has no line."""
    record = struct.Struct("<IIII" if byteorder == "little" else ">IIII")
    records = []
    for start, function in functions:
        if not function.line_info or function.line_info[0].offset:
            return b""
        records += [
            record.pack(start + line.offset // INSN_SIZE, *line[1:]) for line in function.line_info
        ]
    return b"".join(records)
