"""`pack_v8_process`: a V8 as bpf_src/include/java_layout.h has it."""

from __future__ import annotations

import struct

from purebpf.runtimes.v8.code_ranges import CodeRanges
from purebpf.runtimes.v8.layout import V8Layout

__all__ = ["pack_v8_process"]

_PROCESS = struct.Struct("<5Q11H2x")
_LITERAL = 4
"""Behind the flags of a SharedFunctionInfo: the number of the function in its script."""
_POINTER = 1
_PLACES = 2


def pack_v8_process(layout: V8Layout, ranges: CodeRanges, identity: int, generation: int) -> bytes:
    """Return the struct v8_process of a V8."""
    starts, size = ranges.builtins_at(_PLACES)
    return _PROCESS.pack(
        identity,
        generation,
        *starts,
        size,
        layout.map_type,
        layout.function_shared,
        layout.shared_script,
        layout.shared_flags + _LITERAL,
        layout.script_id,
        layout.bytecode_data - _POINTER,
        layout.type_function_first,
        layout.type_function_last,
        layout.type_shared,
        layout.type_script,
        layout.type_bytecode,
    )
