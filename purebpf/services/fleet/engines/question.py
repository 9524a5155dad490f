"""A question that another engine answers: the same statements, about compacted files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from purebpf.services.fleet.answers import STORED_FRAMES, Question
from purebpf.services.fleet.tables import column_types

if TYPE_CHECKING:
    import duckdb

    from purebpf.services.fleet.engines.engine import Engine
    from purebpf.services.fleet.selection import Selection
    from purebpf.services.fleet.stores.store import Store

__all__ = ["EngineQuestion"]


class EngineQuestion(Question):
    """See `Question`. DuckDB answers questions about the windows: they are few.

    Args:
        store: where.
        selection: which samples.
        connection: of DuckDB.
        engine: answers about samples.
        by_host: see `Question`.
    """

    def __init__(
        self,
        store: Store,
        selection: Selection,
        connection: duckdb.DuckDBPyConnection,
        engine: Engine,
        *,
        by_host: bool = False,
    ) -> None:
        super().__init__(store, selection, connection, by_host=by_host, all_files=False)
        self._engine = engine
        for table in ("samples", "rollup", "windows", "series", "stacks", "frames"):
            paths = [store.path(name) for name in self.catalog.compacted.get(table, ())]
            engine.view_files(table, paths, column_types(table))
        # a date has each stack once, a range of dates may not
        unique = "select stack, any_value(frames) as frames from stacks group by stack"
        engine.view("unique_stacks", unique)
        renamed = super().ask("select frame, same from renamed")
        pairs = [f"select {a}::bigint as frame, {b}::bigint as same" for a, b in renamed]
        nothing = "select frame, frame as same from frames where false"
        engine.view("renamed", " union all ".join(pairs) or nothing)

    def table(self, statement: str) -> tuple[list[str], list[tuple[object, ...]]]:
        """See `Question`. The engine has the file permissions of this process."""
        return self._engine.table(statement)

    def keep(self, name: str, statement: str) -> None:
        """See `Question`: as a view."""
        self._engine.view(name, statement)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """See `Question`."""
        return self._engine.rows(statement)

    def keep_stacked(self, columns: str) -> None:
        """See `Question`. An engine chooses the sides of a join by itself."""
        self.keep(
            "stacked",
            f"select {columns} stack, {STORED_FRAMES} as frames, value "
            "from picked left join unique_stacks using (stack)",
        )
