"""The offsets in one version of CPython that a stack trace needs."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["NONE", "Layout"]

NONE = -1
"""The offset of what a version does not have."""


class Layout(NamedTuple):
    """Offsets in bytes; sizes where the name says so.

    Attributes:
        interpreters: in `_PyRuntime`, the first interpreter.
        gil_in_runtime, gil_in_interpreter: the lock itself in the former (before 3.12), a pointer
            to it in the latter.
        gil_locked, gil_holder, gil_size: of the lock.
        interpreter_next, interpreter_id, threads: in an interpreter.
        thread_next, thread_interpreter: in a thread state.
        thread_id: the result of pthread_self(); `native_id`: the result of gettid() (3.11).
        frame: in a thread state, its frame; where there is a `cframe`, a pointer to that.
        current: in a `cframe`, the frame (3.11 and 3.12).
        frame_code, frame_previous, frame_instruction: in a frame. The last is a pointer to code
            units, before 3.11 an index.
        frame_owner: the field that marks the first frame of a call of the evaluation loop.
        frame_size: bytes of a frame to read for all of this.
        code_*: in a code object; `code_bytes` is where the code units begin (3.11), and
            `code_version` a number that no other one has (3.12).
        code_size: bytes of a code object to read for all of this.
        ascii_size, compact_size: of the headers of strings.
        string_length, string_state: in those.
        bytes_length, bytes_data: in a bytes object.
        type_name: in a type.
        code_tlbc, frame_tlbc: builds without a GIL (3.14) have code units for each thread. The
            former is a pointer to a table of pointers to those, the latter an index of it.
        string_shift: bits of `string_state` below those that it begins with elsewhere.
    """

    interpreters: int
    gil_in_runtime: int
    gil_in_interpreter: int
    gil_locked: int
    gil_holder: int
    gil_size: int
    interpreter_next: int
    interpreter_id: int
    threads: int
    thread_next: int
    thread_interpreter: int
    thread_id: int
    native_id: int
    frame: int
    current: int
    frame_code: int
    frame_previous: int
    frame_instruction: int
    frame_owner: int
    frame_size: int
    code_filename: int
    code_name: int
    code_qualname: int
    code_first_line: int
    code_lines: int
    code_version: int
    code_bytes: int
    code_size: int
    ascii_size: int
    compact_size: int
    string_length: int
    string_state: int
    bytes_length: int
    bytes_data: int
    type_name: int
    code_tlbc: int = NONE
    frame_tlbc: int = NONE
    string_shift: int = 0
