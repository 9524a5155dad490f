"""The attributes of bpf(2), union bpf_attr, as text: the command's members that are not 0. Pure.

`purebpf.abi.layouts` has the members and their places.
"""

from __future__ import annotations

import struct

from purebpf.abi.bpf import bpf_attach_type, bpf_cmd
from purebpf.abi.layouts import ATTR
from purebpf.tools.trace.constants import enum_name, flag_names
from purebpf.tools.trace.kinds import LICENSE_AT, PATHNAME_PART, Kind
from purebpf.tools.trace.quoting import quote
from purebpf.tools.trace.special import pointer
from purebpf.tools.trace.view import View

__all__ = ["attributes"]

_ELEMENT = ("map_fd", "key", "value", "flags")
_MEMBERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "MAP_CREATE": ("map_create", ()),
    "MAP_LOOKUP_ELEM": ("map_elem", _ELEMENT),
    "MAP_UPDATE_ELEM": ("map_elem", _ELEMENT),
    "MAP_LOOKUP_AND_DELETE_ELEM": ("map_elem", _ELEMENT),
    "MAP_DELETE_ELEM": ("map_elem", ("map_fd", "key")),
    "MAP_GET_NEXT_KEY": ("map_elem", ("map_fd", "key", "next_key")),
    "MAP_FREEZE": ("map_elem", ("map_fd",)),
    "MAP_LOOKUP_BATCH": ("batch", ()),
    "MAP_LOOKUP_AND_DELETE_BATCH": ("batch", ()),
    "MAP_UPDATE_BATCH": ("batch", ()),
    "MAP_DELETE_BATCH": ("batch", ()),
    "PROG_LOAD": ("prog_load", ()),
    "OBJ_PIN": ("obj", ()),
    "OBJ_GET": ("obj", ()),
    "PROG_ATTACH": ("prog_attach", ()),
    "PROG_DETACH": ("prog_attach", ()),
    "PROG_TEST_RUN": ("test", ()),
    "PROG_GET_NEXT_ID": ("get_id", ("start_id", "next_id", "open_flags")),
    "MAP_GET_NEXT_ID": ("get_id", ("start_id", "next_id", "open_flags")),
    "BTF_GET_NEXT_ID": ("get_id", ("start_id", "next_id", "open_flags")),
    "LINK_GET_NEXT_ID": ("get_id", ("start_id", "next_id", "open_flags")),
    "PROG_GET_FD_BY_ID": ("get_id", ("prog_id", "open_flags", "fd_by_id_token_fd")),
    "MAP_GET_FD_BY_ID": ("get_id", ("map_id", "open_flags", "fd_by_id_token_fd")),
    "BTF_GET_FD_BY_ID": ("get_id", ("btf_id", "open_flags", "fd_by_id_token_fd")),
    "LINK_GET_FD_BY_ID": ("get_id", ("link_id", "open_flags", "fd_by_id_token_fd")),
    "OBJ_GET_INFO_BY_FD": ("info", ()),
    "PROG_QUERY": ("query", ()),
    "RAW_TRACEPOINT_OPEN": ("raw_tracepoint", ()),
    "BTF_LOAD": ("btf_load", ()),
    "TASK_FD_QUERY": ("task_fd_query", ()),
    "LINK_CREATE": ("link_create", ("prog_fd", "target_fd", "attach_type", "flags")),
    "LINK_UPDATE": ("link_update", ("link_fd", "new_prog_fd", "flags", "old_prog_fd")),
    "LINK_DETACH": ("link_detach", ()),
    "ENABLE_STATS": ("enable_stats", ()),
    "ITER_CREATE": ("iter_create", ()),
    "PROG_BIND_MAP": ("prog_bind_map", ()),
    "TOKEN_CREATE": ("token_create", ()),
    "PROG_STREAM_READ_BY_FD": ("prog_stream_read", ()),
    "PROG_ASSOC_STRUCT_OPS": ("prog_assoc_struct_ops", ()),
}
"""By command: the layout, and which of its members if some share their place."""

_OF_LINK = {
    bpf_attach_type.BPF_PERF_EVENT: "perf_event_",
    bpf_attach_type.BPF_TRACE_KPROBE_MULTI: "kprobe_multi_",
    bpf_attach_type.BPF_TRACE_KPROBE_SESSION: "kprobe_multi_",
    bpf_attach_type.BPF_TRACE_UPROBE_MULTI: "uprobe_multi_",
    bpf_attach_type.BPF_TRACE_UPROBE_SESSION: "uprobe_multi_",
    bpf_attach_type.BPF_TRACE_FENTRY: "tracing_",
    bpf_attach_type.BPF_TRACE_FEXIT: "tracing_",
    bpf_attach_type.BPF_TRACE_ITER: "iter_",
}
"""Members of link_create that are those of an attach type."""

_ENUMS = {"map_type": "bpf_map_type", "prog_type": "bpf_prog_type",
          "attach_type": "bpf_attach_type", "expected_attach_type": "bpf_attach_type"}  # fmt: skip
_FLAGS = {"map_flags": "bpf_map_flags", "prog_flags": "bpf_prog_flags"}
_NUMBERS = ("flags", "cookie", "revision", "map_extra", "probe_offset")
_TEXTS = {("obj", "pathname"): PATHNAME_PART, ("raw_tracepoint", "name"): PATHNAME_PART,
          ("prog_load", "license"): LICENSE_AT}  # fmt: skip
_ALWAYS = ("attach_type", "next_id", "key", "value", "next_key")
_SHARED = ("target_ifindex", "attach_btf_obj_fd", "relative_id", "count")  # with the one before


def attributes(view: View, index: int, _: Kind) -> str:
    """The members that the command has: `{map_fd=3, key=0x7ffc70, value=0x7ffc78}`."""
    data = view.piece(index)
    try:
        command = bpf_cmd(view.uint32(0)).name.removeprefix("BPF_")
    except ValueError:
        command = ""
    if not data or command not in _MEMBERS:
        return pointer(view.arguments[index])
    after = data if view.failed or view.result is None else view.piece(index, end=True) or data
    layout, names = _MEMBERS[command]
    fields = ATTR[layout].fields
    if not names:
        names = tuple(name for name in fields if layout == "batch" or name not in _SHARED)
    if layout == "link_create" and (kind := _of_link(data)):
        names += tuple(name for name in fields if name.startswith(kind))
    shown_fields = []
    for field_index, name in enumerate(names):
        offset, code = fields[name]
        if offset + struct.calcsize(code) > len(data):
            continue
        (value,) = struct.unpack_from(code, data, offset)
        text, last = _member(view, layout, name, value), value
        if code == "I" and len(after) >= offset + struct.calcsize(code):
            (last,) = struct.unpack_from(code, after, offset)
        if last != value:
            shown_fields.append(f"{name}={text} => {_member(view, layout, name, last)}")
        elif not field_index or name in _ALWAYS or value not in (0, bytes(16)):
            shown_fields.append(f"{name}={text}")
    return f"{{{', '.join(shown_fields)}}}"


def _of_link(data: bytes) -> str | None:
    kind = int.from_bytes(data[8:12], "little")
    return next((prefix for number, prefix in _OF_LINK.items() if number == kind), None)


def _member(view: View, layout: str, name: str, value: int | bytes) -> str:
    if isinstance(value, bytes):
        return quote(value.partition(b"\0")[0])
    if table := _ENUMS.get(name):
        return enum_name(table, value)
    if table := _FLAGS.get(name):
        return flag_names(table, value)
    if name in {"flags", "elem_flags"} and layout in {"map_elem", "batch"}:
        return flag_names("bpf_update", value)
    if name == "kern_version":
        return f"KERNEL_VERSION({value >> 16}, {value >> 8 & 0xFF}, {value & 0xFF})"
    if (part := _TEXTS.get((layout, name))) is not None:
        text = view.piece(1, part)
        return pointer(value) if text is None else quote(text.rstrip(b"\0"))
    if ATTR[layout].fields[name][1] == "Q" and not name.endswith(_NUMBERS):
        return pointer(value)
    if name.endswith("fd"):
        return str(value - (1 << 32) if value >> 31 == 1 else value)
    if name.endswith("flags") and value:
        return f"{value:#x}"
    return str(value)
