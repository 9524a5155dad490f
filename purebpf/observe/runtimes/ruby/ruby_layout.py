"""`pack_ruby_process`: a Ruby as bpf_src/include/python_layout.h has a process."""

from __future__ import annotations

import struct

from purebpf.observe.runtimes.bpf_constants import FILE, LINE, NAME, check_offsets
from purebpf.runtimes.ruby.contexts import ContextSlot
from purebpf.runtimes.ruby.layout import RubyLayout

__all__ = ["pack_ruby_process"]

_PROCESS = struct.Struct("<2QiI4B26H36xB19xI4x")
_STYLE = 4
"""RUBY_FRAMES."""
_NOTHING = 16
"""A byte of `code_fields` that stays empty."""
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
    lines = layout.body_lines_size - layout.body_lines, layout.body_line_index - layout.body_lines
    check_offsets("Ruby frames", layout, _IN_BPF, lines=lines == (16, 24))
    fields = {
        0: layout.context_thread,
        1: layout.context_frame,
        7: layout.frame_size,
        9: FILE,
        10: NAME,
        11: LINE,
        13: _NOTHING,
        15: layout.line_size,
        22: layout.thread_context,
    }
    return _PROCESS.pack(
        *(identity, generation, slot.offset, slot.block, slot.block != 0, 0, _STYLE, 0),
        *(fields.get(number, 0) for number in range(26)),
        *(layout.embeds_length, layout.body_lines),
    )
