"""A store with an hour of hosts that were never there, and what an engine says of it."""

from __future__ import annotations

import time

from purebpf.services.fleet import duck
from purebpf.services.fleet.answers import Question
from purebpf.services.fleet.compaction import compact
from purebpf.services.fleet.decode import decode
from purebpf.services.fleet.engines.engine import Engine
from purebpf.services.fleet.engines.question import EngineQuestion
from purebpf.services.fleet.landing import land, new_batch_id
from purebpf.services.fleet.rows import Batch
from purebpf.services.fleet.selection import Selection
from purebpf.services.fleet.stores.store import Store
from tests.support.host.deliveries import HOUR_S, Truth, messages

__all__ = ["WHOLE_HOUR", "answers", "fill", "put"]

WHOLE_HOUR = Selection(HOUR_S * 10**6, (HOUR_S + 3600) * 10**6)


def put(store: Store, hosts: int, seed: int) -> None:
    """What so many hosts sent, as the hub stores it."""
    batch = Batch({})
    for sent in messages(Truth(), hosts=hosts, seed=seed):
        for delivery in decode(sent.data, now_ns=time.time_ns()):
            window = delivery.window._replace(delivery=delivery.window.delivery ^ seed)
            batch.add(delivery._replace(window=window))
    land(store, batch, new_batch_id())


def fill(store: Store) -> None:
    """Two files of each table, of an hour that is over."""
    for seed in (1, 2):
        put(store, 3, seed)
        compact(store, now_s=HOUR_S + 5000, say=lambda _made: None)


def answers(store: Store, engine: Engine | None = None) -> tuple[object, ...]:
    """Functions, stacks and the sum, by an engine; None: DuckDB."""
    with duck.connect(store) as connection:
        if engine is None:
            asked = Question(store, WHOLE_HOUR, connection, by_host=False)
        else:
            asked = EngineQuestion(store, WHOLE_HOUR, connection, engine, by_host=False)
        return asked.functions(5), sorted(asked.stacks()), asked.total()
