"""The offsets in each version of Ruby that a stack trace needs.

The interpreter's file names no offsets, only its version, "3.1.2": structures stay the same within
"3.1". `scripts/generate_runtime.py` compiles the offsets of a version from its headers.
"""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["LAYOUTS", "RubyLayout"]


class RubyLayout(NamedTuple):
    """Offsets in bytes.

    Attributes:
        version: 301 is Ruby 3.1.
        context_stack, context_stack_size, context_frame, context_thread: in an execution context
            (`rb_execution_context_t`): the memory of its frames, its size in words, the innermost
            frame, and the thread.
        thread_context: in a thread, the context that it runs.
        frame_size, frame_pc, frame_iseq, frame_env: of a frame (`rb_control_frame_t`): its size,
            the next instruction, the code (`rb_iseq_t`), and the end of its environment.
        iseq_body: in the code, its content.
        body_size, body_code: in that, the number of words of the instructions, and these.
        body_path, body_label, body_first_line: the file, the name and the first line of the code.
        body_lines, body_lines_size, body_line_index: the table of lines, the number of its entries,
            and the index that leads from an instruction to its entry.
        line_size: of an entry, which begins with the line.
        entry_definition: in a method entry, the definition.
        definition_id: in a definition, the number of its name.
        embeds_length: 1 if strings in the object itself have a length, as the others have; up to
            3.1 it is in the flags.
        last_operator: the highest number of a name that has no kind in its low bits.
    """

    version: int
    context_stack: int = 0
    context_stack_size: int = 8
    context_frame: int = 16
    context_thread: int = 48
    thread_context: int = 48
    frame_size: int = 56
    frame_pc: int = 0
    frame_iseq: int = 16
    frame_env: int = 32
    iseq_body: int = 16
    body_size: int = 4
    body_code: int = 8
    body_path: int = 64
    body_label: int = 80
    body_first_line: int = 88
    body_lines: int = 112
    body_lines_size: int = 128
    body_line_index: int = 136
    line_size: int = 12
    entry_definition: int = 16
    definition_id: int = 32
    embeds_length: int = 1
    last_operator: int = 169


_FIXNUM_LINES = RubyLayout(
    301,
    thread_context=40,
    frame_size=64,
    body_lines=120,
    body_lines_size=136,
    body_line_index=144,
    embeds_length=0,
)

LAYOUTS = {
    (3, 0): _FIXNUM_LINES._replace(
        version=300, context_thread=56, frame_size=56, line_size=8, last_operator=168
    ),
    (3, 1): _FIXNUM_LINES,
    (3, 2): RubyLayout(302, frame_size=64),
    (3, 3): RubyLayout(303),
    (3, 4): RubyLayout(304, last_operator=170),
}
"""By version."""
