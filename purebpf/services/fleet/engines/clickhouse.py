"""ClickHouse, as the package chdb has it in the process (https://clickhouse.com/docs/chdb)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from chdb import ChdbError
from chdb.session import Session

from purebpf.services.fleet.duck import QueryError, quote
from purebpf.services.fleet.engines.translate import translate

__all__ = ["ClickHouse"]

_SETTINGS = {
    "join_use_nulls": "1",  # what a left join does not find is null, as elsewhere
    "session_timezone": "'UTC'",
    "use_hive_partitioning": "0",  # a folder's hour would hide the column
    "max_memory_usage": "2000000000",
}
_TYPES = {
    "timestamp": "DateTime64(6, 'UTC')",
    "varchar": "String",
    "bigint": "Int64",
    "bigint[]": "Array(Int64)",
    "map(varchar, varchar)": "Map(String, String)",
    "map(varchar, bigint)": "Map(String, Int64)",
}


class ClickHouse:
    """See `Engine`. One at a time in a process."""

    def __init__(self) -> None:
        self._session = Session()
        for name, value in _SETTINGS.items():
            self._run(f"set {name} = {value}")

    def view_files(self, name: str, paths: Sequence[str], columns: Mapping[str, str]) -> None:
        """See `Engine`."""
        listed = ", ".join(f"{column} {_TYPES[kind]}" for column, kind in columns.items())
        self._run(f"drop table if exists {name}")
        if not paths:
            self._run(f"create table {name} ({listed}) engine = Memory")
            return
        parts = [
            f"select {', '.join(columns)} from {_source(path)}, Parquet, {quote(listed)})"
            for path in paths
        ]
        self._run(f"create view {name} as {' union all '.join(parts)}")

    def view(self, name: str, statement: str) -> None:
        """See `Engine`."""
        self._run(f"create or replace view {name} as {translate(statement, 'clickhouse')}")

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """See `Engine`."""
        return self.table(statement)[1]

    def table(self, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """See `Engine`."""
        text = self._run(translate(statement, "clickhouse"), "JSONCompactEachRowWithNames")
        names, *rows = map(json.loads, text.splitlines())
        return names, [tuple(row) for row in rows]

    def close(self) -> None:
        """See `Engine`."""
        self._session.close()

    def _run(self, statement: str, format_name: str = "CSV") -> str:
        try:
            answer = self._session.query(statement, format_name)
        except (ChdbError, RuntimeError) as error:
            raise QueryError(str(error).strip().splitlines()[0]) from None
        return "" if answer is None else str(answer)


def _source(path: str) -> str:
    """The beginning of a table function; objects with the credentials of the environment."""
    scheme, colon, place = path.partition("://")
    if not colon:
        return f"file({quote(path)}"
    if scheme != "s3":
        raise QueryError(f"{path}: the engine clickhouse reads directories and buckets of S3")
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "").rstrip("/")
    words = [f"{endpoint}/{place}" if endpoint else path]
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    keys = [os.environ[name] for name in names if os.environ.get(name)]
    return f"s3({', '.join(map(quote, words + keys if len(keys) > 1 else words))}"
