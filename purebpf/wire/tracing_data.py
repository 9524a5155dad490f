"""The feature TRACING_DATA: the formats of the tracepoints of a file, without which no reader can
find the fields of their samples. The layout is trace.dat's (trace-cmd.dat.v6(5)), up to the name of
the tool that wrote it.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping, Sequence

__all__ = ["pack_tracing_data"]

_MAGIC = b"\x17\x08\x44tracing"
_VERSION = b"0.6\0"
_U32 = struct.Struct("=I")
_U64 = struct.Struct("=Q")


def pack_tracing_data(
    header_page: bytes,
    header_event: bytes,
    formats: Mapping[str, Sequence[bytes]],
    *,
    page_size: int,
    comms: bytes = b"",
) -> bytes:
    """The feature's bytes.

    Args:
        header_page: the file events/header_page of tracefs.
        header_event: events/header_event.
        formats: by category, the format files of its tracepoints.
        page_size: of this machine, in bytes.
        comms: the file saved_cmdlines: names of threads.
    """
    parts = [_MAGIC, _VERSION, bytes([sys.byteorder == "big", struct.calcsize("P")])]
    parts += [_U32.pack(page_size)]
    parts += [b"header_page\0", _add_size(header_page), b"header_event\0", _add_size(header_event)]
    parts += [_U32.pack(0)]  # formats of ftrace's own events
    parts += [_U32.pack(len(formats))]
    for category, texts in formats.items():
        parts += [category.encode() + b"\0", _U32.pack(len(texts)), *map(_add_size, texts)]
    parts += [_U32.pack(0), _U32.pack(0)]  # kallsyms and printk formats: not kept
    parts += [_add_size(comms)]
    return b"".join(parts)


def _add_size(data: bytes) -> bytes:
    return _U64.pack(len(data)) + data
