"""The files of a hub: a batch of deliveries in the folders of their hours.

A batch counts when its `windows` file is there, which is written last: a hub that is killed before
that has stored nothing, and its senders send it again. A delivery that is in two batches (its
answer was lost) counts in the earlier one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from purebpf.services.fleet.rows import KINDS, Batch, Hour
from purebpf.services.fleet.stores.store import Store

__all__ = ["FOLDER", "Landed", "land", "landed_in", "new_batch_id"]

FOLDER = "landing"
_ALL_KINDS = "windows"


class Landed(NamedTuple):
    """A batch in the folder of an hour: its id, and its tables that have a file."""

    batch: str
    tables: frozenset[str]

    def file(self, hour: str, table: str) -> str:
        """The name of one of its files."""
        return f"{FOLDER}/{hour}/{self.batch}.{table}.parquet"


def new_batch_id() -> str:
    """Ids sort by time; two hubs do not get the same one."""
    return f"{time.time_ns():020d}-{random.getrandbits(32):08x}"  # noqa: S311 - not a secret


def land(store: Store, batch: Batch, batch_id: str) -> int:
    """Store a batch, durably; how many bytes it took.

    Raises:
        OSError: there is no room, or the directory cannot be written; nothing of the batch counts.
    """
    from purebpf.services.fleet.tables import parquet

    written = 0
    last = []
    for hour, rows in batch.hours.items():
        for table, made in _tables(rows):
            name = f"{FOLDER}/{hour}/{batch_id}.{table}.parquet"
            data = parquet(made)
            written += len(data)
            if table == _ALL_KINDS:
                last.append((name, data))
            else:
                store.write(name, data)
    for name, data in last:
        store.write(name, data)
    return written


def _tables(rows: Hour) -> Iterator[tuple[str, object]]:
    """The tables of an hour that have rows."""
    from purebpf.services.fleet import tables

    if rows.frames:
        yield "frames", tables.frames_table(rows.frames.values())
    if rows.stacks:
        yield "stacks", tables.stacks_table(rows.stacks.items())
    if rows.series:
        yield "series", tables.series_table(rows.series.values())
    for kind in KINDS:
        deliveries = [one for one in rows.deliveries if one.window.kind == kind and one.samples]
        if deliveries:
            yield kind, tables.samples_table(deliveries)
    yield _ALL_KINDS, tables.windows_table([one.window for one in rows.deliveries])


def landed_in(store: Store, hour: str) -> Sequence[Landed]:
    """The batches that count in an hour, oldest first."""
    batches: dict[str, set[str]] = {}
    for name in store.names(f"{FOLDER}/{hour}"):
        batch, _, rest = name.partition(".")
        if rest.endswith(".parquet"):
            batches.setdefault(batch, set()).add(rest.removesuffix(".parquet"))
    return [
        Landed(batch, frozenset(tables))
        for batch, tables in sorted(batches.items())
        if _ALL_KINDS in tables
    ]
