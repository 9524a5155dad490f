"""Places that were named later, and the functions that they are.

A place without a name and a function have different numbers. When a place gets a name, its stacks
keep the number, and the sums of functions take the function's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from purebpf.services.fleet.duck import rows
from purebpf.services.fleet.ids import frame_id

if TYPE_CHECKING:
    import duckdb

__all__ = ["SAME", "find_renamed"]

SAME = "left join renamed using (frame)"
"""SQL that adds `same` to rows with a frame: the number of its function, null for most."""


def find_renamed(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """SQL for the table `renamed`, of the view `frames`: `frame`, `same`."""
    named = rows(
        connection,
        "select distinct frame, function, module from frames "
        "where build_id <> '' and function <> ''",
    )
    pairs = [f"({frame}, {frame_id(name, module, '', -1)})" for frame, name, module in named]
    yield "create temp table renamed (frame bigint, same bigint)"
    if pairs:
        yield (
            f"insert into renamed from (values {', '.join(pairs)}) as pairs(frame, same) "
            "semi join (select frame as same from frames) using (same)"
        )
