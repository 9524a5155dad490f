"""Turns the landed files of an hour into sorted files, a roll-up, and a manifest that names them.

The manifest is replaced at once, so that a reader has the hour before or after it, never half; a
killed run leaves files that no manifest names, which the next run replaces. Another run adds later
files. Landing files stay for `_LINGER_S`, for readers that began before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from purebpf.services.fleet.duck import BATCH, connect, quote, relation, total
from purebpf.services.fleet.landing import FOLDER, Landed, landed_in
from purebpf.services.fleet.rows import KINDS
from purebpf.services.fleet.stores.store import Manifest, Store
from purebpf.services.fleet.tables import empty_rows, write_parquet

if TYPE_CHECKING:
    import duckdb

__all__ = ["Compacted", "compact", "compact_hour"]

_CLOSED_S = 600
"""After the end of an hour, for windows that are sent late."""
_LINGER_S = 900
_ORDER = {
    # equal values side by side: 2.1 bytes a row, where the order of time first takes 2.6
    "samples": "service, stack, host, ts",
    "rollup": "service, version, stack",
    "windows": "ts, host, kind",
    "series": "service, host, series",
    "stacks": "stack",
    "frames": "frame",
}


class Compacted(NamedTuple):
    """The result for one hour: rows of samples, and bytes of all its files."""

    hour: str
    batches: int
    rows: int
    nbytes: int


def compact(store: Store, *, now_s: float, say: Callable[[Compacted], object]) -> list[Compacted]:
    """Compact every hour that is over, and remove landed files that have been compacted.

    Raises:
        StoreError: another process compacts, or a manifest is damaged.
        QueryError: DuckDB cannot read a file.
        OSError: there is no room.
    """
    store.require_own()
    done = []
    with store.alone() as keep, connect(store) as connection:
        for hour in store.names(FOLDER):
            if _end_s(hour) + _CLOSED_S > now_s:
                continue
            keep()
            made = compact_hour(store, connection, hour)
            if made is not None:
                done.append(made)
                say(made)
            _clean(store, hour, now_s)
    return done


def compact_hour(
    store: Store, connection: duckdb.DuckDBPyConnection, hour: str
) -> Compacted | None:
    """Add the landed files of an hour to its files; None: there is nothing new."""
    before = store.manifest(hour) or Manifest({}, [])
    fresh = [one for one in landed_in(store, hour) if one.batch not in before.landed]
    if not fresh:
        return None
    files = {table: list(names) for table, names in before.files.items()}
    part = f"part-{1 + max(map(len, files.values()), default=0)}"
    writer = _HourWriter(store, connection, hour, fresh, part)
    writer.find_repeated(before.files.get("windows", []))
    nrows = nbytes = 0
    for table, name, count in writer.write():
        files.setdefault(table, []).append(name)
        nbytes += store.size(name)
        nrows += count if table.startswith("samples/") else 0
    landed = sorted({*before.landed, *(one.batch for one in fresh)})
    store.write(f"hours/{hour}.json", Manifest(files, landed).text().encode())
    for kind in KINDS:  # as Spark marks a folder that is complete
        if f"samples/{kind}" in files:
            store.write(f"{_folder('samples', hour, kind)}/_SUCCESS", b"")
    return Compacted(hour, len(fresh), nrows, nbytes)


class _HourWriter:
    """Writes the files of an hour from some batches."""

    def __init__(
        self,
        store: Store,
        connection: duckdb.DuckDBPyConnection,
        hour: str,
        batches: Sequence[Landed],
        part: str,
    ) -> None:
        self._store, self._connection = store, connection
        self._hour, self._batches, self._part = hour, batches, part

    def find_repeated(self, compacted: Sequence[str]) -> None:
        """Make the table `counted`: each delivery that is not compacted yet, in its first batch."""
        paths = [self._store.path(name) for name in compacted]
        old = relation(paths) if paths else empty_rows("windows")
        self._connection.execute(
            f"create or replace temp table counted as select delivery, min({BATCH}) as batch "
            f"from {self._landed('windows')} "
            f"where delivery not in (select delivery from {old}) group by delivery"
        )

    def write(self) -> Iterator[tuple[str, str, int]]:
        """Write each table: its key in the manifest, the file, and its rows."""
        counted = "(select delivery, batch from counted)"
        for kind in KINDS:
            if not any(kind in one.tables for one in self._batches):
                continue
            picked = (
                f"select * exclude (filename, delivery) from {self._landed(kind)} "
                f"where (delivery, {BATCH}) in {counted}"
            )
            name, count = self._copy("samples", picked, kind)
            yield f"samples/{kind}", name, count
            rolled = (
                f"select timestamp {quote(_sql_hour(self._hour))} as hour, service, version, "
                f"stack, {total('value')} as value, "
                f"coalesce({total('case when period > 0 then value // period end')}, 0) as count, "
                "count(distinct host) as hosts "
                f"from read_parquet({quote(self._store.path(name))}, hive_partitioning = false) "
                "group by service, version, stack"
            )
            name, count = self._copy("rollup", rolled, kind)
            yield f"rollup/{kind}", name, count
        picked = (
            f"select * exclude (filename) from {self._landed('windows')} "
            f"where (delivery, {BATCH}) in {counted}"
        )
        yield "windows", *self._copy("windows", picked)
        # a frame may get a name later: a row of its own
        for table, key in (
            ("series", "series"),
            ("stacks", "stack"),
            ("frames", "frame, function"),
        ):
            if any(table in one.tables for one in self._batches):
                picked = f"(select distinct on ({key}) * from {self._landed(table)})"
                if stored := self._of_date(table):
                    picked += f" anti join {relation(stored)} using ({key})"
                picked = f"select * exclude (filename) from {picked}"
                yield table, *self._copy(table, picked)

    def _of_date(self, table: str) -> list[str]:
        """The files of a table that the date has: each row is in one of them alone."""
        names: list[str] = []
        for name in self._store.names("hours"):
            if name.startswith(self._hour[:10]):
                manifest = self._store.manifest(name.removesuffix(".json"))
                names += manifest.files.get(table, ()) if manifest else ()
        return [self._store.path(name) for name in names]

    def _landed(self, table: str) -> str:
        names = [one.file(self._hour, table) for one in self._batches if table in one.tables]
        return relation([self._store.path(name) for name in names], with_name=True)

    def _copy(self, table: str, picked: str, kind: str = "") -> tuple[str, int]:
        """Write rows in the table's order; the file's name, and how many they are."""
        name = f"{_folder(table, self._hour, kind)}/{self._part}.parquet"
        reader: Any = self._connection.sql(f"{picked} order by {_ORDER[table]}").to_arrow_reader(
            1 << 18
        )
        count = 0

        def write(file: Any) -> None:
            nonlocal count
            count = write_parquet(reader, reader.schema, file)

        self._store.write_by(name, write)
        return name, count


def _folder(table: str, hour: str, kind: str) -> str:
    """Return the folder of a table for an hour, in the way of Hive."""
    date, _, number = hour.partition("T")
    of_kind = f"kind={kind}/" if kind else ""
    return f"{table}/{of_kind}date={date}/hour={number}"


def _sql_hour(hour: str) -> str:
    return hour.replace("T", " ") + ":00:00"


def _end_s(hour: str) -> float:
    """When an hour is over; never for a folder that is none."""
    import calendar

    try:
        return calendar.timegm(time.strptime(hour, "%Y-%m-%dT%H")) + 3600
    except ValueError:
        return float("inf")


def _clean(store: Store, hour: str, now_s: float) -> None:
    """Remove landing files that the manifest has had for a while."""
    manifest = store.manifest(hour)
    if manifest is None or store.age_s(f"hours/{hour}.json", now_s) < _LINGER_S:
        return
    for name in store.names(f"{FOLDER}/{hour}"):
        if name.partition(".")[0] in manifest.landed:
            store.delete(f"{FOLDER}/{hour}/{name}")
