"""`pack_ruby_process`: a Ruby as bpf_src/include/python_layout.h has a process."""

from __future__ import annotations

import struct

from purebpf.errors import NotSupportedError
from purebpf.runtimes.ruby.contexts import ContextSlot
from purebpf.runtimes.ruby.layout import RubyLayout

__all__ = ["pack_ruby_process"]

_PROCESS = struct.Struct("<2QiI4B26H36xB19xI4x")
_STYLE = 4
"""RUBY_FRAMES."""
_NAME, _NOTHING, _FILE, _LINE = 8, 16, 24, 32
"""Bytes of `code_fields`, which read_ruby_function() of python_code.h fills."""
_IN_BPF = {
    "context_stack": 0,
    "context_stack_size": 8,
    "context_frame": 16,
    "frame_pc": 0,
    "frame_iseq": 16,
    "frame_env": 32,
    "iseq_body": 16,
    "body_size": 4,
    "body_code": 8,
    "body_path": 64,
    "body_label": 80,
    "body_first_line": 88,
    "entry_definition": 16,
    "definition_id": 32,
}
"""Offsets that are constants of ruby_frames.h, ruby_thread.h and python_code.h."""


def pack_ruby_process(
    layout: RubyLayout, slot: ContextSlot, identity: int, generation: int
) -> bytes:
    """Return the struct python_process of a Ruby.

    Raises:
        NotSupportedError: BPF has other offsets.
    """
    others = [name for name, offset in _IN_BPF.items() if getattr(layout, name) != offset]
    lines = layout.body_lines_size - layout.body_lines, layout.body_line_index - layout.body_lines
    if others or lines != (16, 24):
        raise NotSupportedError("Ruby frames", f"BPF has other offsets of {', '.join(others)}")
    fields = {
        0: layout.context_thread,
        1: layout.context_frame,
        7: layout.frame_size,
        9: _FILE,
        10: _NAME,
        11: _LINE,
        13: _NOTHING,
        15: layout.line_size,
        22: layout.thread_context,
    }
    return _PROCESS.pack(
        *(identity, generation, slot.offset, slot.block, slot.block != 0, 0, _STYLE, 0),
        *(fields.get(number, 0) for number in range(26)),
        *(layout.embeds_length, layout.body_lines),
    )
