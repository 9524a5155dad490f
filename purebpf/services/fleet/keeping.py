"""Keeps a store in order: old days removed, files checked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from purebpf.services.fleet import duck
from purebpf.services.fleet.landing import FOLDER, landed_in
from purebpf.services.fleet.rows import KINDS
from purebpf.services.fleet.stores.store import Manifest, Store, StoreError

if TYPE_CHECKING:
    import duckdb

__all__ = ["check", "prune"]

_TABLES = ("samples", "rollup", "windows", "series", "stacks", "frames")
_STALE_S = 3600


def prune(store: Store, keep_days: float, now_s: float) -> list[str]:
    """Remove the days that ended more than `keep_days` ago; which they were.

    Each hour gets a manifest without files first, so that from one moment on a reader finds nothing
    of it, rather than a part.
    """
    store.require_own()
    # a day is over at its last second
    last = time.strftime("%Y-%m-%d", time.gmtime(now_s - keep_days * 86400 - 86400))
    manifests = {name.removesuffix(".json") for name in store.names("hours")}
    hours = {hour for hour in {*manifests, *store.names(FOLDER)} if hour[:10] <= last}
    gone = {hour[:10] for hour in hours}
    for hour in hours:
        landed = sorted({name.partition(".")[0] for name in store.names(f"{FOLDER}/{hour}")})
        store.write(f"hours/{hour}.json", Manifest({}, landed).text().encode())
    for hour in hours:
        for name in store.names(f"{FOLDER}/{hour}"):
            store.delete(f"{FOLDER}/{hour}/{name}")
    for folder in _date_folders(store):
        date = folder.rpartition("date=")[2]
        if date <= last:
            gone.add(date)
            for hour in store.names(folder):
                for name in store.names(f"{folder}/{hour}"):
                    store.delete(f"{folder}/{hour}/{name}")
    for hour in hours:
        store.delete(f"hours/{hour}.json")
    return sorted(gone)


def check(store: Store, now_s: float) -> Iterator[str]:
    """Yield the faults, a sentence each.

    Every file of every manifest is read whole; samples and their roll-up have to agree, and each
    stack and frame has to be there.
    """
    store.require()
    named: set[str] = set()
    dates: dict[str, dict[str, list[str]]] = {}
    with duck.connect(store) as connection:
        for name in store.names("hours"):
            hour = name.removesuffix(".json")
            try:
                manifest = store.manifest(hour)
            except StoreError as error:
                yield str(error)
                continue
            files = manifest.files if manifest else {}
            named.update(path for paths in files.values() for path in paths)
            missing = [
                path for paths in files.values() for path in paths if not _is_there(store, path)
            ]
            yield from (f"{path} is missing: the manifest of {hour} has it" for path in missing)
            if not missing:
                yield from _check_sums(store, connection, hour, files)
                for table, paths in files.items():
                    dates.setdefault(hour[:10], {}).setdefault(table, []).extend(paths)
        yield from _check_references(store, connection, dates)
        for hour in store.names(FOLDER):
            for batch in landed_in(store, hour):
                for table in batch.tables:
                    yield from _unreadable(store, connection, batch.file(hour, table))
    for folder in _date_folders(store):
        for hour in store.names(folder):
            for name in store.names(f"{folder}/{hour}"):
                path = f"{folder}/{hour}/{name}"
                if name != "_SUCCESS" and path not in named:
                    yield f"{path} is in no manifest: a compaction was killed; the next replaces it"
    for part in store.parts():
        if store.age_s(part, now_s) > _STALE_S:
            yield f"{part} was being written when its process was killed: remove it"


def _check_sums(
    store: Store, connection: duckdb.DuckDBPyConnection, hour: str, files: dict[str, list[str]]
) -> Iterator[str]:
    def read(table: str) -> str:
        return duck.relation([store.path(path) for path in files[table]])

    try:
        for kind in KINDS:
            if not files.get(f"samples/{kind}"):
                continue
            ((samples, rolled),) = duck.rows(
                connection,
                f"select (select sum(value) from {read(f'samples/{kind}')}), "
                f"(select sum(value) from {read(f'rollup/{kind}')})",
            )
            if samples != rolled:
                yield f"{hour}, {kind}: samples are {samples} ns, their roll-up {rolled} ns"
        for table in files:
            duck.rows(connection, f"select count(columns(*)) from {read(table)}")
    except duck.QueryError as error:
        yield f"{hour}: {error}"


def _check_references(
    store: Store, connection: duckdb.DuckDBPyConnection, dates: dict[str, dict[str, list[str]]]
) -> Iterator[str]:
    """Check that each date has the stacks of its samples, and their frames."""

    def read(date: str, *tables: str) -> str:
        paths = [path for table in tables for path in dates[date].get(table, [])]
        return duck.relation([store.path(path) for path in paths]) if paths else ""

    for date in sorted(dates):
        samples = read(date, *(f"samples/{kind}" for kind in KINDS))
        stacks, frames = read(date, "stacks"), read(date, "frames")
        if not samples or not stacks or not frames:
            continue
        try:
            ((no_stack,),) = duck.rows(
                connection,
                f"select count(*) from (select distinct stack from {samples}) "
                f"anti join {stacks} using (stack)",
            )
            ((no_frame,),) = duck.rows(
                connection,
                f"select count(*) from (select distinct unnest(frames) as frame from {stacks}) "
                f"anti join {frames} using (frame)",
            )
        except duck.QueryError as error:
            yield f"{date}: {error}"
            continue
        if no_stack or no_frame:
            yield f"{date}: {no_stack} stacks of samples, {no_frame} frames of stacks are missing"


def _unreadable(store: Store, connection: duckdb.DuckDBPyConnection, name: str) -> Iterator[str]:
    try:
        duck.rows(connection, f"select count(columns(*)) from {duck.relation([store.path(name)])}")
    except duck.QueryError as error:
        yield f"{name}: {error}"


def _is_there(store: Store, name: str) -> bool:
    try:
        return store.size(name) > 0
    except FileNotFoundError:
        return False


def _date_folders(store: Store) -> Iterator[str]:
    """Folders of a table (and kind) and a date."""
    for table in _TABLES:
        for name in store.names(table):
            if name.startswith("date="):
                yield f"{table}/{name}"
            else:
                yield from (f"{table}/{name}/{date}" for date in store.names(f"{table}/{name}"))
