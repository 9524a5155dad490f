"""Write docs/schemas/NAME-1.json for the JSON of the commands.

    .venv/bin/python scripts/generate_schemas.py [--check]

The types of the fields of named tuples say what a reader may rely on, and for other results the
shapes below; readers ignore members that they do not know. triage-1.json is written by hand.

A shape is a type, `None`, a constant (`Const`), `{name: shape}` (an object, `name?` may be
missing), `[shape]` (a list), `Map(shape)` (an object with any names), or a tuple of shapes, one of
which fits.
"""

from __future__ import annotations

import json
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from purebpf.tools.doctor.model import Report as DoctorReport
from purebpf.tools.dump.model import ProcessDump

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS: Mapping[str, type] = {"doctor": DoctorReport, "dump": ProcessDump}


class Const(NamedTuple):
    """A value that is always the same."""

    value: object


class Map(NamedTuple):
    """An object whose names are data, such as errnos."""

    values: Any


_COUNTS = Map(int)
_NUMBER_OR_NONE = (int, float, None)
_BUCKETS = [[int]]
_TASK = {"time": str, "pid": int, "tid": int, "uid": int, "comm": str}
_STACK = {
    "weight": int,
    "comm": str,
    "pid": int,
    "tid?": int,
    "cpu?": int,
    "cgroup?": str,
    "state?": str,
    "process?": str,
    "kind?": str,
    "user": ([int], None),
    "kernel": ([int], None),
    "slots?": [[int]],
    "times?": int,
    "runnable?": int,
    "time_ns?": int,
    "inflight?": bool,
    "idle?": bool,
    "cut?": str,
    "guessed?": int,
    "waker?": {
        "comm": str,
        "pid": int,
        "tid": int,
        "user": ([int], None),
        "kernel": ([int], None),
    },
}
_FRAME = {
    "kind": str,
    "address": str,
    "name?": str,
    "offset?": int,
    "unknown?": str,
    "detail?": str,
    "module?": str,
    "build_id?": str,
    "file_offset?": int,
    "file?": str,
    "line?": int,
}
_REPORT = {
    "title": str,
    "unit": str,
    "total": int,
    "about": Map(object),
    "frames": [_FRAME],
    "slot_ns?": int,
    "stacks": [_STACK],
    "samples?": [_STACK],
    "cost": _COUNTS,
    "loss": Map((int, None, Map(object))),
    "tolerance": int,
    "advice": Map(str),
    "notes?": [str],
    "hints?": [str],
    "threads?": [Map(object)],
}
_DIFF = {
    "title": str,
    "unit": str,
    "before": int,
    "after": int,
    "cpus": ([float], None),
    "worst": float,
    "functions": [
        {
            "name": str,
            "module": str,
            "kind": str,
            "state": str,
            "own_before": float,
            "own_after": float,
            "total_before": float,
            "total_after": float,
            "by_chance": bool,
        }
    ],
}
_DISTRIBUTION = {
    "elapsed_s": float,
    "unit_ns": int,
    "groups": [
        {
            "group": Map((int, str, None)),
            "count": int,
            "total_ns": int,
            "p50_ns": (int, None),
            "p90_ns": (int, None),
            "p99_ns": (int, None),
            "buckets": _BUCKETS,
        }
    ],
    "loss": _COUNTS,
}
_KWORK = {
    "time_s": float,
    "elapsed_s": float,
    "cpus": int,
    "rows": [
        {
            "kind": str,
            "id": int,
            "name": str,
            "cpu": int,
            "runs": int,
            "total_ns": int,
            "max_ns": int,
            "max_end_ns": int,
            "delayed": int,
            "delay_ns": int,
            "max_delay_ns": int,
            "max_delay_end_ns": int,
            "buckets": _BUCKETS,
            "delay_buckets": _BUCKETS,
            "stack": [str],
        }
    ],
    "loss": _COUNTS,
    "notes": [str],
}
_STAT = {
    "time_s": float,
    "elapsed_s": float,
    "runs": int,
    "elapsed_standard_error_s": _NUMBER_OR_NONE,
    "counts": [
        {
            "event": str,
            "group": int,
            "key": str,
            "value": _NUMBER_OR_NONE,
            "unit": str,
            "counted": int,
            "enabled_ns": int,
            "running_ns": int,
            "percent_running": float,
            "standard_error": _NUMBER_OR_NONE,
            "metric": ({"value": float, "unit": str, "is_estimate": bool}, None),
            "why_not": str,
        }
    ],
    "loss": _COUNTS,
    "notes": [str],
    "command?": {"user_s": float, "system_s": float},
}
_SYSCALL = {
    "syscall": str,
    "nr": int,
    "abi": str,
    "calls": int,
    "errors": int,
    "total_ns": int,
    "min_ns": int,
    "avg_ns": float,
    "max_ns": int,
    "stddev_pct": float,
    "p50_ns": (int, None),
    "p95_ns": (int, None),
    "p99_ns": (int, None),
    "errno": _COUNTS,
    "untimed": int,
}
_FAULTS = {
    "major": (int, None),
    "minor": (int, None),
    "places": [{"kind": str, "function": str, "mapping": str, "times": int}],
}
_SUMMARY = {
    "interval?": int,
    "started_ns?": int,
    "duration_ns": int,
    "mode": str,
    "groups": [{"group": Map((int, str, None)), "rows": [_SYSCALL], "faults?": _FAULTS}],
    "inflight": [
        {
            "pid": int,
            "tid": int,
            "comm": (str, None),
            "syscall": str,
            "nr": int,
            "abi": str,
            "elapsed_ns": (int, None),
        }
    ],
    "loss": _COUNTS,
    "cost": _COUNTS,
}
_TYPES = (
    {
        "struct": str,
        "size": int,
        "samples": int,
        "members": [
            {
                "name": str,
                "offset": int,
                "size": int,
                "samples": int,
                "reads": int,
                "writes": int,
                "inferred": int,
                "functions": _COUNTS,
            }
        ],
    },
    {
        "schema": Const("purebpf.types/1"),
        "samples": int,
        "typed": int,
        "inferred": int,
        "untyped": _COUNTS,
        "slabs": {"right": int, "wrong": int, "typed": int},
        "event": str,
        "loss": _COUNTS,
    },
)
_INSPECT = (
    {"source": str, "programs": [Map(object)], "maps": [Map(object)], "notes": [str]},
    {"source": str, "header": Map(object), "sections": [Map(object)], "notes": [Map(object)]},
    {"source": str, "size": int, "events": [Map(object)], "features": [Map(object)]},
    {"source": str, "size": int, "endian": str},
)


def _event(name: str, members: Mapping[str, Any]) -> dict[str, Any]:
    return {"event": Const(name), **members}


_EXEC = {**_TASK, "ppid": int, "cgroup": str}
_CALLER = {**_TASK, "cgroup": str}
_CONNECTION = {
    **_TASK,
    "cgroup": int,
    "netns": int,
    "socket": str,
    "direction": str,
    "local_address": str,
    "local_port": int,
    "remote_address": str,
    "remote_port": int,
    "remote_name": str,
    "took_ns": (int, None),
    "received": int,
    "sent": int,
    "retransmits": int,
    "srtt_us": int,
    "error": str,
    "old_state": str,
    "new_state": str,
    "names": [str],
    "addresses": [str],
}
_FAILURES = {"calls": int, "failed": int, "errno": _COUNTS, "total_ns": int, "max_ns": int}
_EVENTS = (
    # exec
    _event("exec", {**_EXEC, "path": str, "executable": str, "arguments": [str], "cut_bytes": int}),
    _event("fail", {**_EXEC, "path": str, "errno": str}),
    _event(
        "exit",
        {
            **_EXEC,
            "status": (int, None),
            "signal": (str, None),
            "dumped_core": bool,
            "lifetime_ns": (int, None),
        },
    ),
    _event("used", {**_EXEC, "cpu_ns": int}),
    _event(
        "program",
        {
            "program": str,
            "starts": int,
            "ends": int,
            "failed": int,
            "failures": _COUNTS,
            "cpu_ns": int,
            "lifetime_ns": int,
        },
    ),
    # open
    _event(
        "open",
        {
            **_CALLER,
            "path": (str, None),
            "given": (str, None),
            "flags": [str],
            "dirfd": int,
            "fd": (int, None),
            "errno": (str, None),
            "duration_ns": int,
        },
    ),
    _event("path", {"path": str, **_FAILURES, "processes": int}),
    _event("process", {"pid": int, "comm": str, **_FAILURES, "paths": int}),
    # trace
    _event(
        "call",
        {
            **_CALLER,
            "name": str,
            "abi": str,
            "names": [str],
            "arguments": [str],
            "words": [int],
            "result": (int, None),
            "result_text": str,
            "errno": (str, None),
            "duration_ns": (int, None),
            "ending": str,
            "stack?": [str],
        },
    ),
    _event("exit", {**_CALLER, "status": int, "signal": str, "dumped": bool}),
    _event("signal", {**_CALLER, "name": str, "info": str}),
    _event(
        "tracepoint",
        {
            **_CALLER,
            "name": str,
            "arguments": Map(str),
            "values": Map((int, str)),
            "stack?": [str],
        },
    ),
    _event("lost", {"calls": int, "by_name": _COUNTS}),
    _event(
        "summary",
        {
            "syscall": str,
            "calls": int,
            "errors": int,
            "lost": int,
            "timed": int,
            "total_ns": int,
            "min_ns": int,
            "max_ns": int,
        },
    ),
    # tcp
    *(
        _event(name, _CONNECTION)
        for name in ("connect", "accept", "close", "fail", "retransmit", "state", "dns")
    ),
    _event(
        "peer",
        {
            "direction": str,
            "address": str,
            "port": int,
            "connections": int,
            "failed": int,
            "errors": _COUNTS,
            "connect_avg_ns": _NUMBER_OR_NONE,
            "connect_max_ns": (int, None),
            "open_ns": int,
            "received": int,
            "sent": int,
            "retransmits": int,
        },
    ),
    # io
    _event(
        "request",
        {
            **_TASK,
            "cgroup": int,
            "disk": str,
            "op": str,
            "sector": int,
            "bytes": int,
            "took_ns": int,
            "queued_ns": int,
            "error": str,
            "inode": int,
            "file": str,
        },
    ),
    # lock
    _event(
        "wait",
        {
            "time": str,
            "pid": int,
            "tid": int,
            "uid?": int,
            "comm": str,
            "type": str,
            "lock": str,
            "name": str,
            "took_ns": int,
            "caller": str,
            "stack": [str],
            "owner_tid": int,
        },
    ),
    # latency
    _event(
        "call",
        {
            **_TASK,
            "function": str,
            "took_ns": int,
            "result": (int, None),
            "depth": int,
            "kernel_stack": [str],
            "user_stack": [str],
        },
    ),
    # io, lock and latency
    _event("interval", {"time": str, "elapsed_s": float, "rows": [Map(object)]}),
    _event("summary", {"by": str, "rows": [Map(object)], "elapsed_s?": float}),
    # all
    _event("loss", {"schema": Const("purebpf.events/1"), "loss": _COUNTS}),
)

SHAPES: Mapping[str, Any] = {
    "diff": _DIFF,
    "distribution": _DISTRIBUTION,
    "events": _EVENTS,
    "inspect": _INSPECT,
    "kwork": _KWORK,
    "report": _REPORT,
    "stat": _STAT,
    "summary": _SUMMARY,
    "types": _TYPES,
}
"""The shape of each document, or of each line of `events` and `types`; version 1 of all."""

STREAMS = ("events", "types")
"""One object a line; only the last line names the schema."""
NAMES = (*DOCUMENTS, *SHAPES)
_PLAIN: Mapping[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    # numbers that JavaScript would round are hexadecimal text
    int: {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^-?0x[0-9a-f]+$"}]},
    float: {"type": "number"},
    None: {"type": "null"},
    object: {},
}


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a document, or of a line of a stream."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    named = {"schema": {"const": f"purebpf.{name}/1"}}
    if name in DOCUMENTS:
        body = _object(DOCUMENTS[name])
    elif name in STREAMS:
        return {**head, "title": f"a line of purebpf.{name}/1", **_shape(SHAPES[name])}
    elif isinstance(SHAPES[name], tuple):
        body = {"type": "object", "required": [], "properties": {}, **_shape(SHAPES[name])}
    else:
        body = _shape(SHAPES[name])
    return {
        **head,
        "title": f"purebpf.{name}/1",
        **body,
        "required": ["schema", *body["required"]],
        "properties": named | body["properties"],
    }


def _shape(shape: Any) -> dict[str, Any]:
    if isinstance(shape, Const):
        return {"const": shape.value}
    if isinstance(shape, Map):
        return {"type": "object", "additionalProperties": _shape(shape.values)}
    if isinstance(shape, tuple):
        return {"anyOf": [_shape(part) for part in shape]}
    if isinstance(shape, list):
        return {"type": "array", "items": _shape(shape[0])}
    if isinstance(shape, dict):
        return {
            "type": "object",
            "required": [member for member in shape if not member.endswith("?")],
            "properties": {member.rstrip("?"): _shape(part) for member, part in shape.items()},
        }
    return _PLAIN[shape]


def _object(fields: type) -> dict[str, Any]:
    hints = typing.get_type_hints(fields)
    optional = {name for name, hint in hints.items() if type(None) in typing.get_args(hint)}
    return {
        "type": "object",
        "required": [name for name in hints if name not in optional],
        "properties": {name: _type(hint) for name, hint in hints.items()},
    }


def _type(hint: Any) -> dict[str, Any]:
    if hint in _PLAIN:
        return _PLAIN[hint]
    arguments = typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        (present,) = (kind for kind in arguments if kind is not type(None))
        return _type(present)
    if typing.get_origin(hint) is tuple:
        return {"type": "array", "items": _type(arguments[0])}
    return _object(hint)


def main() -> int:
    """Write the files, or with --check say which differ."""
    stale = 0
    for name in NAMES:
        file = ROOT / f"docs/schemas/{name}-1.json"
        text = json.dumps(schema(name), indent=2) + "\n"
        if sys.argv[1:] != ["--check"]:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            sys.stderr.write(f"{file}: run scripts/generate_schemas.py\n")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
