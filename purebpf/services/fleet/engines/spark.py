"""Spark: on this machine, or a cluster that sees the store at the same path."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from purebpf.services.fleet.duck import QueryError
from purebpf.services.fleet.engines.translate import translate

__all__ = ["Spark"]

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "16",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",  # a cluster without room for a job says so
    "spark.task.maxFailures": "4",
}


class Spark:
    """See `Engine`.

    Args:
        master: `local[*]`, `spark://HOST:PORT`, `yarn`.

    Raises:
        QueryError: it does not start: no Java, no such cluster.
    """

    def __init__(self, master: str) -> None:
        # it logs each refused statement with the whole trace, and raises it, too
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        builder = SparkSession.builder.master(master).appName("purebpf fleet")
        for name, value in _SETTINGS.items():
            builder = builder.config(name, value)
        try:
            self._session = builder.getOrCreate()
        except (PySparkException, OSError, RuntimeError) as error:
            raise QueryError(f"Spark does not start: {_first_line(error)}") from None

    def view_files(self, name: str, paths: Sequence[str], columns: Mapping[str, str]) -> None:
        """See `Engine`."""
        if not paths:
            self.view(name, _none(columns))
            return
        known = [path.replace("s3://", "s3a://", 1) for path in paths]  # by hadoop-aws's name
        try:
            frame = self._session.read.parquet(*known).select(*columns)
            frame.createOrReplaceTempView(name)
        except (PySparkException, Py4JError) as error:
            raise QueryError(_first_line(error)) from None

    def view(self, name: str, statement: str) -> None:
        """See `Engine`."""
        self._ask(statement).createOrReplaceTempView(name)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """See `Engine`."""
        return self.table(statement)[1]

    def table(self, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """See `Engine`."""
        try:
            frame = self._ask(statement)
            return frame.columns, [tuple(row) for row in frame.collect()]
        except PySparkException as error:
            raise QueryError(_first_line(error)) from None

    def close(self) -> None:
        """See `Engine`."""
        self._session.stop()

    def _ask(self, statement: str) -> Any:
        try:
            return self._session.sql(translate(statement, "spark"))
        except PySparkException as error:
            raise QueryError(_first_line(error)) from None


def _none(columns: Mapping[str, str]) -> str:
    nulls = ", ".join(f"null::{kind} as {name}" for name, kind in columns.items())
    return f"select {nulls} where false"


def _first_line(error: Exception) -> str:
    of_java = getattr(error, "java_exception", None)
    text = str(error if of_java is None else of_java.toString())
    return (text.strip() or type(error).__name__).splitlines()[0]
