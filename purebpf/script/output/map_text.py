"""Maps as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purebpf.script.map_info import MapInfo
from purebpf.script.output.histogram import list_buckets, show_histogram
from purebpf.script.output.map_rows import Stats
from purebpf.script.output.text import show, show_key
from purebpf.script.output.time_series import TimeSeries, list_intervals, show_series

__all__ = ["dump_json", "json_of", "map_json", "map_text", "value_text"]

_WORDS = {"hist": "hist", "lhist": "hist", "stats": "stats", "avg": "stats", "tseries": "tseries"}


def map_text(info: MapInfo, rows: Sequence[tuple[Any, Any]], top: int = 0, divisor: int = 0) -> str:
    """Return the lines of a map: the last `top` rows, values divided by `divisor`."""
    if top:
        rows = rows[-top:]
    pieces = []
    for key, value in rows:
        label = info.name if key is None else f"{info.name}[{show_key(key)}]"
        text = value_text(info, _divided(value, divisor))
        pieces.append(f"{label}:\n{text}\n" if info.has_buckets else f"{label}: {text}\n")
    return "".join(pieces)


def value_text(info: MapInfo, value: Any) -> str:
    """Return the value of a row."""
    if isinstance(value, TimeSeries):
        return show_series(value)
    if info.has_buckets:
        assert info.value is not None
        return show_histogram(list_buckets(info.value, value))
    if isinstance(value, Stats):
        return show({"count": value.number, "average": value.average, "total": value.total})
    return show(value)


def _divided(value: Any, divisor: int) -> Any:
    if not divisor or isinstance(value, bool):
        return value
    if isinstance(value, int):
        quotient = abs(value) // divisor
        return -quotient if value < 0 else quotient
    if isinstance(value, dict) and all(isinstance(key, int) for key in value):
        return {key: count // divisor for key, count in value.items()}
    return value


def map_json(info: MapInfo, rows: Sequence[tuple[Any, Any]], divisor: int = 0) -> str:
    """Return a map as a line of JSON."""
    rows = [(key, _divided(value, divisor)) for key, value in rows]
    assert info.value is not None
    kind = info.value.kind
    if info.is_scalar:
        empty: Any = [] if info.has_buckets else 0
        data = _json_value(info, rows[0][1]) if rows else empty
    else:
        data = {_json_key(key): _json_value(info, value) for key, value in rows}
    return dump_json({"type": _WORDS.get(kind, "map"), "data": {info.name: data}}) + "\n"


def _json_key(key: Any) -> str:
    return ",".join(map(_key_part, key)) if isinstance(key, tuple) else _key_part(key)


def _key_part(value: Any) -> str:
    return f"[{_json_key(value)}]" if isinstance(value, tuple) else show(value)


def _json_value(info: MapInfo, value: Any) -> Any:
    if isinstance(value, TimeSeries):
        return list_intervals(value)
    if info.has_buckets:
        assert info.value is not None
        return [
            {
                **({} if bucket.low is None else {"min": bucket.low}),
                **({} if bucket.high is None else {"max": bucket.high}),
                "count": bucket.number,
            }
            for bucket in list_buckets(info.value, value)
        ]
    if isinstance(value, Stats):
        return {"count": value.number, "average": value.average, "total": value.total}
    return json_of(value)


def json_of(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, dict):
        return {name: json_of(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [json_of(item) for item in value]
    if isinstance(value, bytes):
        return list(value)
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def dump_json(value: Any) -> str:
    """Write JSON with blanks in objects, and none in lists of plain values."""
    import json

    if isinstance(value, dict):
        pairs = (f"{json.dumps(str(name))}: {dump_json(item)}" for name, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        is_plain = not (value and isinstance(value[0], dict))
        return "[" + (",".join if is_plain else ", ".join)(map(dump_json, value)) + "]"
    return json.dumps(value)
