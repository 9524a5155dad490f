"""Rows of a map: keys and values, in the order in which they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from purebpf.script.map_info import MapInfo
from purebpf.script.output.decode import Decoder
from purebpf.script.output.time_series import combine_cpus, cut_series
from purebpf.script.types import Type
from purebpf.tuples import NamedTuple

__all__ = ["Stats", "needs_processes", "rows_of", "total_of"]

Values = tuple[bytes, ...] | bytes


class Stats(NamedTuple):
    """The result of stats()."""

    number: int
    average: int
    total: int


def rows_of(
    info: MapInfo, items: Iterable[tuple[bytes, Values]], decoder: Decoder
) -> list[tuple[Any, Any]]:
    """Return decoded keys (None without one) and values; a histogram is a dict of counts."""
    if info.value is not None and info.value.kind == "tseries":
        return _series(info.value, info, items, decoder)
    if info.has_buckets:
        return _histograms(info, items, decoder)
    assert info.value is not None
    rows: list[tuple[Any, Any]]
    if info.is_aggregate:
        rows = [(label, total_of(info, parts)) for label, parts in _group(info, items, decoder)]
    else:
        rows = [
            (_label(info, key, decoder), decoder.value(info.value, data))
            for key, data in items
            if isinstance(data, bytes)
        ]
        if info.is_counter and info.key is not None and _has_stack(info.key):
            rows = _merge(info.value, rows)
    return sorted(rows, key=lambda row: _order(info, row))


def _label(info: MapInfo, key: bytes, decoder: Decoder) -> Any:
    """Return a decoded key, None of a map without one."""
    return None if info.is_scalar or info.key is None else decoder.value(info.key, key)


def _group(
    info: MapInfo, items: Iterable[tuple[bytes, Values]], decoder: Decoder
) -> Iterable[tuple[Any, tuple[bytes, ...]]]:
    """Put the values of all CPUs together by key: stacks of other numbers may have equal names."""
    grouped: dict[Any, tuple[Any, tuple[bytes, ...]]] = {}
    for key, data in items:
        parts = data if isinstance(data, tuple) else (data,)
        label = _label(info, key, decoder)
        _, before = grouped.get(_sortable(label), (label, ()))
        grouped[_sortable(label)] = label, before + parts
    return grouped.values()


def total_of(info: MapInfo, values: tuple[bytes, ...]) -> Any:
    """Return the value over all CPUs."""
    assert info.value is not None
    kind, signed = info.value.kind, info.value.signed
    words = [
        [int.from_bytes(part[at : at + 8], "little", signed=signed) for at in (0, 8)[: info.words]]
        for part in values
    ]
    if kind in ("count", "sum"):
        return _wrap(sum(word[0] for word in words), is_signed=signed)
    if kind in ("min", "max"):
        given = [word[0] for word in words if word[1]]
        return (min if kind == "min" else max)(given, default=0)
    number = sum(word[0] for word in words)
    total = _wrap(sum(word[1] for word in words), is_signed=signed)
    average = abs(total) // number if number else 0
    average = -average if total < 0 else average
    return average if kind == "avg" else Stats(number, average, total)


def _wrap(value: int, *, is_signed: bool) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if is_signed and value >> 63 else value


def _histograms(
    info: MapInfo, items: Iterable[tuple[bytes, Values]], decoder: Decoder
) -> list[tuple[Any, Any]]:
    grouped: dict[Any, dict[int, int]] = {}
    for key, data in items:
        parts = data if isinstance(data, tuple) else (data,)
        count = sum(int.from_bytes(part[:8], "little") for part in parts)
        if info.is_scalar or info.key is None:
            label, bucket = None, int.from_bytes(key, "little")
        else:
            label = decoder.value(info.key, key)
            bucket = int.from_bytes(key[-8:], "little")
        if count:
            counts = grouped.setdefault(_frozen(label), {})
            counts[bucket] = counts.get(bucket, 0) + count
    return sorted(grouped.items(), key=lambda row: (sum(row[1].values()), _sortable(row[0])))


def _series(
    type_: Type, info: MapInfo, items: Iterable[tuple[bytes, Values]], decoder: Decoder
) -> list[tuple[Any, Any]]:
    parts: dict[tuple[Any, bytes], tuple[bytes, ...]] = {}
    for key, data in items:
        place = _frozen(_label(info, key, decoder)), key[-8:]
        parts[place] = parts.get(place, ()) + (data if isinstance(data, tuple) else (data,))
    by_key: dict[Any, dict[int, int]] = {}
    for (label, _), values in parts.items():
        interval, value = combine_cpus(type_, values)
        by_key.setdefault(label, {})[interval] = value
    return cut_series(type_, dict(sorted(by_key.items(), key=lambda row: _sortable(row[0]))))


def _merge(type_: Type, rows: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Add up counters whose stacks have the same names."""
    merged: dict[Any, tuple[Any, int]] = {}
    for key, value in rows:
        _, before = merged.get(_sortable(key), (key, 0))
        merged[_sortable(key)] = key, _wrap(before + value, is_signed=type_.signed)
    return list(merged.values())


def needs_processes(type_: Type) -> bool:
    """Return True if the text of a value depends on the mappings of processes."""
    return type_.kind in ("ustack", "usym") or any(map(needs_processes, type_.items))


def _has_stack(type_: Type) -> bool:
    return type_.kind in ("kstack", "ustack") or any(map(_has_stack, type_.items))


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _order(info: MapInfo, row: tuple[Any, Any]) -> tuple[Any, ...]:
    assert info.value is not None
    key, value = row
    if info.value.kind in ("int", "count", "sum", "min", "max", "avg"):
        return (int(value), _sortable(key))
    if isinstance(value, Stats):
        return (value.average, _sortable(key))
    return (0, _sortable(key))


def _sortable(key: Any) -> tuple[Any, ...]:
    """Return a value that orders keys of one type."""
    if isinstance(key, tuple | list):
        return tuple(_sortable(item) for item in key)
    if isinstance(key, Mapping):
        return tuple(_sortable(item) for item in key.values())
    if isinstance(key, int):
        return (0, int(key), "")
    return (1, 0, str(key))
