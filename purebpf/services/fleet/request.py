"""The questions to a store."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["FleetOptions", "Query"]


class Query(NamedTuple):
    """A selection of samples, as typed: `where` has (name, value) pairs."""

    since: str = "1h"
    until: str = "now"
    kind: str = "cpu"
    where: tuple[tuple[str, str], ...] = ()


class FleetOptions(NamedTuple):
    """A frozen request.

    `words` are files to import, or a statement; `sides` the conditions that a diff compares, each
    as (name, value) pairs, "since" and "until" among them. `fail_over` is in percentage points;
    None never fails. `listen` is (host, port), `pause_s` how long windows wait to be stored
    together, `keep_days` the days that pruning leaves, `engine` the engine that replaces DuckDB.
    """

    action: str
    words: tuple[str, ...] = ()
    store: str = "/var/lib/purebpf/store"
    query: Query = Query()
    sides: tuple[tuple[tuple[str, str], ...], ...] = ()
    fail_over: float | None = None
    rows: int = 20
    shown: bool = False
    listen: tuple[str, int] = ("127.0.0.1", 4318)
    tokens: str = ""
    certificate: str = ""
    key: str = ""
    insecure: bool = False
    pause_s: float = 5.0
    keep_days: float | None = None
    engine: str = "duckdb"
