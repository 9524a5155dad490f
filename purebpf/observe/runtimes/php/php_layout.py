"""`pack_php_process`: a PHP as bpf_src/include/python_layout.h has a process."""

from __future__ import annotations

import struct

from purebpf.observe.runtimes.bpf_constants import FILE, LINE, NAME, check_offsets
from purebpf.runtimes.php.frames import PhpState
from purebpf.runtimes.php.layout import PhpLayout

__all__ = ["pack_php_process"]

_PROCESS = struct.Struct("<2Q10xB3xH14x3H2xH4xH2xH2x2H48x2QI4x")
_STYLE = 3
"""PHP_FRAMES."""
_CLASS = 16
"""A byte of `code_fields`, beside the ones of every language."""
_IN_BPF = {
    "frame_opline": 0,
    "frame_function": 24,
    "frame_object": 32,
    "frame_info": 40,
    "frame_previous": 48,
    "function_name": 8,
    "function_scope": 16,
    "class_name": 8,
    "opline_line": 24,
    "object_class": 16,
}
"""Offsets that are constants of php_frames.h."""
_GENERATORS = (56, 152)


def pack_php_process(layout: PhpLayout, state: PhpState, identity: int, generation: int) -> bytes:
    """Return the struct python_process of a PHP.

    Raises:
        NotSupportedError: BPF has other offsets.
    """
    is_line_behind_file = layout.function_line == layout.function_file + 8
    check_offsets("PHP frames", layout, _IN_BPF, lines=is_line_behind_file)
    is_known = (layout.generator_frame, layout.generator_parent) == _GENERATORS
    generators = state.generators if is_known else 0
    return _PROCESS.pack(
        identity,
        generation,
        _STYLE,
        layout.current,
        *(FILE, NAME, LINE),
        _CLASS,
        layout.string_text,
        layout.string_length,
        *(layout.string_length, layout.string_text),
        *(state.executor, generators),
        layout.function_file,
    )
