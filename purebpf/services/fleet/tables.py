"""The tables of a store as Parquet: columns, and files made of rows.

No unsigned 64-bit column (Spark reads one as a decimal) and no time zone: all times are UTC.
`value` is nanoseconds in every kind; `value / period` counts the samples where there is a period.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from purebpf.services.fleet.rows import Delivery, Frame, Series, Window

__all__ = [
    "SCHEMAS",
    "column_types",
    "empty_rows",
    "frames_table",
    "parquet",
    "samples_table",
    "series_table",
    "stacks_table",
    "windows_table",
    "write_parquet",
]

_TIME = pa.timestamp("us")
_TEXT, _NUMBER = pa.string(), pa.int64()
_TEXTS = pa.map_(_TEXT, _TEXT)
_NUMBERS = pa.map_(_TEXT, _NUMBER)

_TEXTS_OF = dict.fromkeys(("service", "version"), _TEXT)


def _schema(columns: Mapping[str, pa.DataType], **more: pa.DataType) -> pa.Schema:
    return pa.schema({**columns, **more}.items())


SCHEMAS = {
    "samples": _schema(
        {"ts": _TIME, "host": _TEXT, **_TEXTS_OF, "series": _NUMBER, "stack": _NUMBER},
        value=_NUMBER, period=_NUMBER,
    ),
    "rollup": _schema(
        {"hour": _TIME, **_TEXTS_OF, "stack": _NUMBER},
        value=_NUMBER, count=_NUMBER, hosts=_NUMBER,
    ),
    "windows": _schema(
        {"ts": _TIME, "host": _TEXT, "kind": _TEXT, "delivery": _NUMBER, "start_id": _TEXT},
        **dict.fromkeys(Window._fields[5:], _NUMBER) | {"lost": _NUMBERS},
    ),
    "series": _schema(
        {"series": _NUMBER}, **dict.fromkeys(Series._fields[1:], _TEXT) | {"labels": _TEXTS}
    ),
    "stacks": _schema({"stack": _NUMBER, "frames": pa.list_(_NUMBER)}),
    "frames": _schema(
        {"frame": _NUMBER, "function": _TEXT, "module": _TEXT, "build_id": _TEXT},
        file_offset=_NUMBER, kind=_TEXT,
    ),
}  # fmt: skip
"""The columns of each table, in their order. Landing files of samples have `delivery`, too."""
_PLAIN = {"stack": "DELTA_BINARY_PACKED", "frame": "DELTA_BINARY_PACKED"}
"""Sorted numbers without repetition: their distances are shorter than an index of a dictionary."""


def samples_table(deliveries: Sequence[Delivery]) -> pa.Table:
    """The samples of deliveries."""
    schema = _schema(dict(zip(SCHEMAS["samples"].names, SCHEMAS["samples"].types, strict=True)),
                     delivery=_NUMBER)  # fmt: skip
    columns: list[list[Any]] = [[] for _ in schema]
    for window, samples, series, *_ in deliveries:
        for sample in samples:
            of = series[sample.series]
            row = (window.ts_us, window.host, of.service, of.version, *sample, window.period_ns,
                   window.delivery)  # fmt: skip
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    return pa.table(columns, schema=schema)


def series_table(rows: Iterable[Series]) -> pa.Table:
    """Return the table of series."""
    return _table(rows, SCHEMAS["series"])


def stacks_table(stacks: Iterable[tuple[int, Sequence[int]]]) -> pa.Table:
    """Stacks as frames, leaf first."""
    return _table(sorted(stacks), SCHEMAS["stacks"])


def frames_table(rows: Iterable[Frame]) -> pa.Table:
    """Functions and places."""
    return _table(sorted(rows), SCHEMAS["frames"])


def windows_table(rows: Iterable[Window]) -> pa.Table:
    """Windows that have all their samples stored."""
    return _table(rows, SCHEMAS["windows"])


def _table(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([list(column) for column in columns], schema=schema)


def column_types(table: str) -> dict[str, str]:
    """Return SQL's names for the types of its columns."""
    return {name: _SQL[kind] for name, kind in _columns(table)}


def empty_rows(table: str) -> str:
    """SQL for no rows of a table."""
    columns = ", ".join(f"null::{kind} as {name}" for name, kind in column_types(table).items())
    return f"(select {columns} where false)"


_SQL = {
    _TIME: "timestamp",
    _TEXT: "varchar",
    _NUMBER: "bigint",
    _TEXTS: "map(varchar, varchar)",
    _NUMBERS: "map(varchar, bigint)",
    pa.list_(_NUMBER): "bigint[]",
}


def _columns(table: str) -> Iterable[tuple[str, pa.DataType]]:
    return zip(SCHEMAS[table].names, SCHEMAS[table].types, strict=True)


def parquet(table: pa.Table) -> bytes:
    """A Parquet file in memory."""
    file = io.BytesIO()
    write_parquet([table], table.schema, file)
    return file.getvalue()


def write_parquet(
    batches: Iterable[pa.Table | pa.RecordBatch], schema: pa.Schema, file: Any
) -> int:
    """Write batches into one Parquet file; how many rows they had."""
    names = schema.names
    delta = {name: encoding for name, encoding in _PLAIN.items() if name in names}
    rows = 0
    with pq.ParquetWriter(
        file,
        schema,
        compression="zstd",
        use_dictionary=[name for name in names if name not in delta] or False,
        column_encoding=delta or None,
    ) as writer:
        for batch in batches:
            writer.write(batch)
            rows += batch.num_rows
    return rows
