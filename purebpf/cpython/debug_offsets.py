"""`_Py_DebugOffsets`: where CPython 3.13 and later say themselves what lies where.

It is what `_PyRuntime` begins with: a cookie, the version, whether the build has no GIL, then sizes
and offsets by structure. The order of the fields is the version's own
(Include/internal/pycore_runtime.h of 3.13).
"""

from __future__ import annotations

import struct

from purebpf.cpython.layout import NONE, Layout
from purebpf.cpython.layouts import LAYOUTS

__all__ = ["HEADER_SIZE", "DebugOffsets", "read_debug_offsets"]

_HEADER = struct.Struct("<8sQQ")
_COOKIE = b"xdebugpy"
_MOST = 1 << 20
"""No structure is larger, so that no offset is."""
_FIELDS = {
    (3, 13): """
        runtime_size runtime_finalizing interpreters
        interpreter_size interpreter_id interpreter_next threads interpreter_gc
        interpreter_modules interpreter_sysdict interpreter_builtins gil_in_interpreter
        gil gil_enabled gil_locked_at gil_holder_at
        thread_size thread_previous thread_next thread_interpreter frame thread_id native_id
        thread_chunk thread_status
        interpreter_frame_size frame_previous frame_code frame_instruction frame_locals frame_owner
        code_object_size code_filename code_name code_qualname code_lines code_first_line
        code_arguments code_local_names code_local_kinds code_bytes
        object_size object_type
        type_size type_name
        """,
}
"""The fields up to those needed; names of `Layout` where it has them."""
_AFTER_TYPE_NAME = 2 + 3 + 3 + 3 + 2 + 3
"""Words from there to the bytes object: rest of the type, tuple, list, dict, float, long."""

HEADER_SIZE = 1024
"""Bytes to read of `_PyRuntime`."""


class DebugOffsets:
    """What a `_PyRuntime` says of itself.

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
    """What the first `HEADER_SIZE` bytes of a `_PyRuntime` say; None: it is older than that."""
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
    at = len(fields) + _AFTER_TYPE_NAME
    _, said["bytes_length"], said["bytes_data"] = words[at : at + 3]
    _, said["string_state"], said["string_length"], said["ascii_size"] = words[at + 3 : at + 7]
    if any(value > _MOST for value in said.values()):
        return None
    layout = usual._replace(**{name: said[name] for name in Layout._fields if name in said})
    return layout._replace(
        # what it does not say: from the usual build, unless that has other objects
        tss_key=NONE if free else usual.tss_key,
        frame_size=max(layout.frame_owner + 1, layout.frame_instruction + 8),
        code_size=layout.code_bytes,
        compact_size=layout.ascii_size + 16,
    )
