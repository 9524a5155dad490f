"""The files that answer a question, as views of DuckDB: `samples`, `rollup`, `windows`, and so on.

Explicit lists of files: a search through folders takes longer than most questions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from purebpf.services.fleet.duck import BATCH, relation, rows, run
from purebpf.services.fleet.landing import FOLDER, landed_in
from purebpf.services.fleet.renamed import find_renamed
from purebpf.services.fleet.rows import hour_of
from purebpf.services.fleet.selection import Selection
from purebpf.services.fleet.stores.store import Store
from purebpf.services.fleet.tables import SCHEMAS, empty_rows

if TYPE_CHECKING:
    import duckdb

__all__ = ["Catalog", "find_files", "make_views"]

_HOUR_US = 3_600_000_000


class Catalog(NamedTuple):
    """Files by table; `landed` of those that are not compacted yet.

    `rolled` are the hours, in microseconds, that the roll-up has: whole hours of the range, where
    it can answer.
    """

    compacted: dict[str, list[str]]
    landed: dict[str, list[str]]
    rolled: tuple[int, ...] = ()


def find_files(store: Store, selection: Selection, *, rolled: bool) -> Catalog:
    """The files of a range.

    Args:
        store: where.
        selection: the range and the kind.
        rolled: take whole hours from the roll-up.

    Raises:
        StoreError: there is no such store, or a manifest is damaged.
    """
    store.require()
    compacted: dict[str, list[str]] = {}
    landed: dict[str, list[str]] = {}
    whole = []
    first = selection.since_us // _HOUR_US * _HOUR_US
    first_date, last_date = (
        hour_of(us)[:10] for us in (selection.since_us, selection.until_us - 1)
    )
    for hour in sorted(
        {*store.names(FOLDER), *(n.removesuffix(".json") for n in store.names("hours"))}
    ):
        if not first_date <= hour[:10] <= last_date:  # a range may have a million hours
            continue
        start_us = _start_us(hour)
        is_inside = first <= start_us < selection.until_us
        manifest = store.manifest(hour)
        fresh = [
            one
            for one in landed_in(store, hour)
            if manifest is None or one.batch not in manifest.landed
        ]
        files = manifest.files if manifest else {}
        for table in ("series", "stacks", "frames"):  # of the whole date: see Batch
            compacted.setdefault(table, []).extend(files.get(table, ()))
            landed.setdefault(table, []).extend(
                one.file(hour, table) for one in fresh if table in one.tables
            )
        if not is_inside:
            continue
        compacted.setdefault("windows", []).extend(files.get("windows", ()))
        landed.setdefault("windows", []).extend(one.file(hour, "windows") for one in fresh)
        of_kind = [one.file(hour, selection.kind) for one in fresh if selection.kind in one.tables]
        is_whole = selection.since_us <= start_us and start_us + _HOUR_US <= selection.until_us
        if rolled and is_whole and not of_kind:
            whole.append(start_us)
            compacted.setdefault("rollup", []).extend(files.get(f"rollup/{selection.kind}", ()))
        else:
            compacted.setdefault("samples", []).extend(files.get(f"samples/{selection.kind}", ()))
            landed.setdefault("samples", []).extend(of_kind)
    return Catalog(compacted, landed, tuple(whole))


def make_views(connection: duckdb.DuckDBPyConnection, store: Store, catalog: Catalog) -> list[str]:
    """Make a view of each table; the statements that did it.

    Landed data counts once: not if it has been compacted already, and in its first batch.
    """
    statements = []

    def make(statement: str) -> None:
        run(connection, statement)
        statements.append(statement)

    def compacted(table: str) -> str:
        names = catalog.compacted.get(table)
        return relation([store.path(name) for name in names]) if names else empty_rows(table)

    def landed(table: str) -> str:
        paths = [store.path(name) for name in catalog.landed[table]]
        return relation(paths, with_name=True)

    parts = {table: [compacted(table)] for table in SCHEMAS}
    if catalog.landed.get("windows"):
        make(
            f"create temp table landed_windows as select *, {BATCH} as batch "
            f"from {landed('windows')} "
            f"where delivery not in (select delivery from {compacted('windows')}) "
            f"qualify row_number() over (partition by delivery order by {BATCH}) = 1"
        )
        parts["windows"].append("(select * exclude (batch, filename) from landed_windows)")
    if catalog.landed.get("samples"):
        once = f"(delivery, {BATCH}) in (select (delivery, batch) from landed_windows)"
        all_once = rows(
            connection,
            f"select count(*) = (select count(*) from landed_windows) from {landed('windows')}",
        )[0][0]
        parts["samples"].append(
            f"(select * exclude (filename, delivery) from {landed('samples')} "
            f"where {'true' if all_once else once})"
        )
    for table in ("series", "stacks", "frames"):
        if catalog.landed.get(table):
            parts[table].append(f"(select * exclude (filename) from {landed(table)})")
    parts["unique_stacks"] = list(_unique_stacks(store, catalog))
    for table, sources in parts.items():
        text = " union all by name ".join(f"select * from {source}" for source in sources)
        make(f"create temp view {table} as {text}")
    for statement in find_renamed(connection):
        make(statement)
    return statements


def _unique_stacks(store: Store, catalog: Catalog) -> Iterator[str]:
    """SQL for each stack once. A date has each of its compacted ones once: see `compact_hour`."""
    by_date: dict[str, list[str]] = {}
    for name in catalog.compacted.get("stacks", []):
        by_date.setdefault(name.split("/")[1], []).append(store.path(name))
    sources = [f"(select stack, frames from {relation(paths)})" for paths in by_date.values()]
    if catalog.landed.get("stacks"):
        paths = [store.path(name) for name in catalog.landed["stacks"]]
        sources.append(f"(select distinct on (stack) stack, frames from {relation(paths)})")
    for number, source in enumerate(sources):
        before = " union all ".join(f"select stack from {one}" for one in sources[:number])
        yield f"(select * from {source} anti join ({before}) using (stack))" if before else source
    if not sources:
        yield empty_rows("stacks")


def _start_us(hour: str) -> int:
    import calendar
    import time

    try:
        return calendar.timegm(time.strptime(hour, "%Y-%m-%dT%H")) * 1_000_000
    except ValueError:
        return -1
