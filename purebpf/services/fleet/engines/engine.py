"""The interface of an engine: views of Parquet files, and statements about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from purebpf.services.fleet.duck import QueryError

__all__ = ["ENGINES", "Engine", "open_engine"]

ENGINES = ("duckdb", "clickhouse", "spark")


class Engine(Protocol):
    """Statements are written for DuckDB, and translated. Close it."""

    def view_files(self, name: str, paths: Sequence[str], columns: Mapping[str, str]) -> None:
        """Make a view of Parquet files; `columns` has the types of DuckDB, for no files at all.

        Raises:
            QueryError: the engine refuses.
        """

    def view(self, name: str, statement: str) -> None:
        """Make a view of a statement. Raises as `view_files`."""

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement. Raises as `view_files`."""

    def table(self, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The names of the columns, and the rows. Raises as `view_files`."""

    def close(self) -> None:
        """End it."""


def open_engine(name: str) -> Engine:
    """An engine by its name: `clickhouse`, `spark`, or the address of a cluster, `spark://...`.

    Raises:
        ModuleNotFoundError: its package is not installed.
        QueryError: it does not start.
    """
    if name == "clickhouse":
        from purebpf.services.fleet.engines.clickhouse import ClickHouse

        return ClickHouse()
    if name == "spark" or name.startswith(("spark://", "local[", "k8s://")) or name == "yarn":
        from purebpf.services.fleet.engines.spark import Spark

        return Spark("local[*]" if name == "spark" else name)
    raise QueryError(f"there is no engine {name!r}: {', '.join(ENGINES)}, spark://HOST:PORT")
