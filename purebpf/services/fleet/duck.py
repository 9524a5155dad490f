"""DuckDB: connections with bounded memory, and Parquet files as relations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from purebpf.errors import PurebpfError
from purebpf.services.fleet.scratch import remove_abandoned, scratch_folder

if TYPE_CHECKING:
    import duckdb

    from purebpf.services.fleet.stores.store import Store

__all__ = [
    "BATCH",
    "MemoryLimitError",
    "QueryError",
    "beside",
    "connect",
    "each",
    "half_of_the_cpus",
    "quote",
    "relation",
    "rows",
    "run",
    "table",
    "total",
]

_MEMORY = "700MB"
_PART = 1024
_GONE = ("No files found that match", "No such file or directory", "FileNotFoundError")
_GONE_SAID = "files of this answer were removed while it was read (by prune?): ask again"
_Answer = TypeVar("_Answer")


class QueryError(PurebpfError):
    """DuckDB refuses a statement, or cannot read a file; says why."""


class MemoryLimitError(QueryError):
    """An answer needs more memory than it may have."""


@contextmanager
def connect(
    store: Store, memory: str = _MEMORY, most: str = "", threads: int = 0
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory that can read a store.

    Data that does not fit goes to a temporary directory.

    The directory is ours alone: DuckDB follows links below it, and lets others read its files.

    Args:
        store: where.
        memory: the memory that an answer may use.
        most: the memory for an answer that needs more; "" is a quarter of the machine's memory.
        threads: the most CPUs that an answer may use; 0 is all.
    """
    import duckdb

    _clean_up()
    with scratch_folder() as scratch, duckdb.connect() as connection:
        connection.execute(f"set memory_limit = {quote(memory)}")
        connection.execute(f"set variable most_memory = {quote(most)}")
        connection.execute(f"set temp_directory = {quote(f'{scratch}/spilled')}")
        connection.execute("set timezone = 'UTC'")
        if threads:
            connection.execute(f"set threads = {threads}")
        store.let_read(connection)
        yield connection


@contextmanager
def beside(
    connection: duckdb.DuckDBPyConnection, most: str = ""
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Another connection to the same database, with its memory, and temporary tables of its own;
    `most` as in `connect`.
    """
    with connection.cursor() as other:
        other.execute(f"set variable most_memory = {quote(most)}")
        other.execute("set timezone = 'UTC'")
        yield other


def half_of_the_cpus() -> int:
    """Return half of the CPUs of this process, at least one."""
    return max(1, len(os.sched_getaffinity(0)) // 2)


@cache
def _clean_up() -> None:
    """Remove files of killed processes, once in each process."""
    remove_abandoned()


def relation(paths: Sequence[str], *, with_name: bool = False) -> str:
    """Return SQL for the rows of one or more files; `with_name`: and their names."""
    listed = ", ".join(map(quote, paths))
    more = ", filename = true" if with_name else ""
    return f"read_parquet([{listed}], hive_partitioning = false, union_by_name = true{more})"


BATCH = "split_part(parse_filename(filename), '.', 1)"
"""SQL for the batch of a landing file, where rows have the name of theirs."""


def total(number: str) -> str:
    """Return SQL for the sum of a column of 64 bits; at most the largest that fits: a host can
    send any numbers.
    """
    most = 9223372036854775807
    return f"(case when sum({number}) > {most} then {most} else sum({number}) end)::bigint"


def quote(text: str) -> str:
    """A string as SQL."""
    return "'" + text.replace("'", "''") + "'"


def rows(connection: duckdb.DuckDBPyConnection, statement: str) -> list[tuple[Any, ...]]:
    """All rows of an answer.

    Raises:
        QueryError: DuckDB refused.
    """
    import duckdb

    try:
        return _with_room(connection, lambda: connection.sql(statement).fetchall())
    except duckdb.Error as error:
        raise _explained(error) from error


def each(
    connection: duckdb.DuckDBPyConnection, statement: str, check: Callable[[], object] = bool
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of an answer, of which a thousand at a time are in memory as Python has them.

    The connection answers nothing else meanwhile. `check` is called for each thousand, and may
    raise. Raises as `rows`.
    """
    import duckdb

    try:
        _with_room(connection, lambda: connection.execute(statement))
        while part := connection.fetchmany(_PART):
            check()
            yield from part
    except duckdb.Error as error:
        raise _explained(error) from error


def table(
    connection: duckdb.DuckDBPyConnection, statement: str, folder: str
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows of a statement as a user types it: one that reads, and below a folder only.

    Raises as `rows`. The connection cannot read elsewhere afterwards.
    """
    import duckdb

    try:
        connection.execute(f"set allowed_directories = [{quote(folder)}]")
        connection.execute("set enable_external_access = false")
        connection.execute("set lock_configuration = true")
        parsed = connection.extract_statements(statement)
        if [one.type for one in parsed] != [duckdb.StatementType.SELECT]:
            raise QueryError("one statement that begins with select (or with) is needed")
        answer = connection.sql(statement)
        return list(answer.columns), answer.fetchall()
    except duckdb.Error as error:
        raise QueryError(_GONE_SAID if _is_gone(error) else str(error).strip()) from error


def run(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Run a statement that makes something. Raises as `rows`."""
    import duckdb

    try:
        _with_room(connection, lambda: connection.execute(statement))
    except duckdb.Error as error:
        raise _explained(error) from error


def _with_room(connection: duckdb.DuckDBPyConnection, ask: Callable[[], _Answer]) -> _Answer:
    """An answer; where it needs more memory than most do, it may have more: see `connect`.

    Not everything can go to the temporary directory: joins and sums keep their present data in
    memory.
    """
    import duckdb

    try:
        return ask()
    except duckdb.OutOfMemoryException:
        row = connection.execute("select getvariable('most_memory')").fetchone()
        quarter = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
        most = str(row[0]) if row and row[0] else f"{quarter} B"
        connection.execute(f"set memory_limit = {quote(most)}")
        return ask()


def _explained(error: Exception) -> QueryError:
    import duckdb

    is_of_memory = isinstance(error, duckdb.OutOfMemoryException)
    return (MemoryLimitError if is_of_memory else QueryError)(_reason(error))


def _reason(error: Exception) -> str:
    """The first line, or, where Python code of ours failed in it, that code's reason."""
    if _is_gone(error):
        return _GONE_SAID
    lines = str(error).strip().splitlines()
    return lines[-1 if "Traceback" in lines[0] else 0]


def _is_gone(error: Exception) -> bool:
    return any(words in str(error) for words in _GONE)
