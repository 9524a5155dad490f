"""`_Py_DebugOffsets`: the layout that CPython 3.13 and later describe themselves.

`_PyRuntime` begins with it: a cookie, the version, a flag for builds without a GIL, then sizes and
offsets by structure. The order of the fields depends on the version
(Include/internal/pycore_runtime.h of 3.13, pycore_debug_offsets.h from 3.14 on).
"""

from __future__ import annotations

import struct

from purebpf.runtimes.cpython.layout import NONE, Layout
from purebpf.runtimes.cpython.layouts import LAYOUTS

__all__ = ["HEADER_SIZE", "DebugOffsets", "read_debug_offsets"]

_HEADER = struct.Struct("<8sQQ")
_COOKIE = b"xdebugpy"
_OBJECT_SIZE = 16
"""Of a PyObject with a GIL."""
_OWN_CODE = (3, 14)
_STRING_SHIFT = 6
"""There `PyASCIIObject.state.interned` is a byte, and not two bits."""
_MOST = 1 << 20
"""No structure is larger, so that no offset is."""
_BEFORE_THREADS = """
    runtime_size runtime_finalizing interpreters
    interpreter_size interpreter_id interpreter_next threads
    """
_THREAD = "thread_size thread_previous thread_next thread_interpreter frame"
_FRAME = """
    interpreter_frame_size frame_previous frame_code frame_instruction frame_locals frame_owner
    """
_CODE = """
    code_object_size code_filename code_name code_qualname code_lines code_first_line
    code_arguments code_local_names code_local_kinds code_bytes
    """
_GIL = "gil_in_interpreter gil gil_enabled gil_locked_at gil_holder_at"
_AFTER_CODE = "object_size object_type type_size type_name type_repr type_flags"
_STRINGS = "bytes_size bytes_length bytes_data string_size string_state string_length ascii_size"
_FIELDS = {
    (3, 13): f"""
        {_BEFORE_THREADS} gc modules sysdict builtins {_GIL}
        {_THREAD} thread_id native_id chunk status
        {_FRAME} {_CODE} {_AFTER_CODE}
        tuple1 tuple2 tuple3 list1 list2 list3 dict1 dict2 dict3 float1 float2 long1 long2 long3
        {_STRINGS}
        """,
    (3, 14): f"""
        {_BEFORE_THREADS} threads_main gc modules sysdict builtins {_GIL} code_generation tlbc1
        {_THREAD} thread_id native_id chunk status
        {_FRAME} stack_pointer frame_tlbc {_CODE} code_tlbc {_AFTER_CODE}
        tuple1 tuple2 tuple3 list1 list2 list3 set1 set2 set3 set4
        dict1 dict2 dict3 float1 float2 long1 long2 long3
        {_STRINGS}
        """,
    (3, 15): f"""
        {_BEFORE_THREADS} threads_main gc modules sysdict builtins {_GIL} code_generation tlbc1
        {_THREAD} base_frame profiled1 profiled2 thread_id native_id chunk status
        holds_gil gil_requested exception1 exception2 exception3
        {_FRAME} stack_pointer frame_tlbc {_CODE} code_tlbc {_AFTER_CODE}
        basicsize dictoffset heap1 heap2
        tuple1 tuple2 tuple3 list1 list2 list3 set1 set2 set3 set4
        dict1 dict2 dict3 float1 float2 long1 long2 long3
        {_STRINGS}
        """,
}
"""The fields in the order of the version, up to the last one needed; names of `Layout` where it
has them."""

HEADER_SIZE = 1024
"""Bytes to read of `_PyRuntime`."""


class DebugOffsets:
    """The description at the start of a `_PyRuntime`.

    Attributes:
        version: of the interpreter.
        is_free_threaded: built without a GIL.
        layout: None for a version with fields that are not known here.
    """

    def __init__(self, version: tuple[int, int], layout: Layout | None, *, free: bool) -> None:
        self.version = version
        self.layout = layout
        self.is_free_threaded = free


def read_debug_offsets(raw: bytes) -> DebugOffsets | None:
    """Read the first `HEADER_SIZE` bytes of a `_PyRuntime`; None: it is older."""
    if len(raw) < HEADER_SIZE:
        return None
    cookie, number, free = _HEADER.unpack_from(raw)
    if cookie != _COOKIE or free > 1:
        return None
    version = (number >> 24 & 255, number >> 16 & 255)
    return DebugOffsets(version, _layout(version, raw, free=bool(free)), free=bool(free))


def _layout(version: tuple[int, int], raw: bytes, *, free: bool) -> Layout | None:
    names, usual = _FIELDS.get(version), LAYOUTS.get(version)
    if names is None or usual is None:
        return None
    words = struct.unpack_from(f"<{(HEADER_SIZE - _HEADER.size) // 8}Q", raw, _HEADER.size)
    fields = names.split()
    said = dict(zip(fields, words, strict=False))
    if any(value > _MOST for value in said.values()):
        return None
    # what it does not say is as in the usual build
    layout = usual._replace(**{name: said[name] for name in Layout._fields if name in said})
    if free:  # but that its objects have a longer header
        longer = said["object_size"] - _OBJECT_SIZE
        layout = layout._replace(code_version=usual.code_version + longer)
        if version >= _OWN_CODE:
            layout = layout._replace(string_shift=_STRING_SHIFT)
    if not (free and layout.code_tlbc > 0):
        layout = layout._replace(code_tlbc=NONE, frame_tlbc=NONE)
    return layout._replace(
        frame_size=max(layout.frame_owner + 1, layout.frame_instruction + 8),
        code_size=layout.code_bytes,
        compact_size=layout.ascii_size + 16,
    )
