"""Names of events in old perf.data: a table by `config` alone.

perf of Linux 3.10 writes it (`event_types` in tools/perf/util/header.c), and in a pipe as records;
perf of today does not read it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from purebpf.abi.perf import PERF_EVENT_ATTR, perf_type_id
from purebpf.wire.perf_data import RecordedEvent

__all__ = ["name_by_type", "unpack_types"]

_TYPE = struct.Struct("=Q64s")
"""struct perf_trace_event_type: the config of an event, and its name."""


def unpack_types(data: bytes) -> dict[int, str]:
    """Read the section of event types; a part of an entry at its end does not count."""
    whole = len(data) - len(data) % _TYPE.size
    return {
        config: name.partition(b"\0")[0].decode("utf-8", "surrogateescape")
        for config, name in _TYPE.iter_unpack(data[:whole])
    }


def name_by_type(event: RecordedEvent, types: Mapping[int, str]) -> str:
    """Return the name of an event; "": the table has none.

    The table does not tell kinds of events apart: the tracepoint 2 and page faults have the same
    config. Only a tracepoint's name has a colon.
    """
    attr = PERF_EVENT_ATTR.unpack(event.attr)
    name = types.get(int(attr["config"]), "")
    is_tracepoint = int(attr["type"]) == perf_type_id.PERF_TYPE_TRACEPOINT
    return name if (":" in name) == is_tracepoint else ""
