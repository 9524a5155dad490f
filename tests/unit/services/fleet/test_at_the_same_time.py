"""Questions while others change the store: an answer has all of an hour, or it is an error."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from purebpf.services.fleet import duck
from purebpf.services.fleet.answers import Question
from purebpf.services.fleet.compaction import compact
from purebpf.services.fleet.decode import decode
from purebpf.services.fleet.keeping import prune
from purebpf.services.fleet.landing import land, new_batch_id
from purebpf.services.fleet.rows import Batch
from purebpf.services.fleet.selection import Selection
from purebpf.services.fleet.stores.directory import Directory
from purebpf.services.fleet.stores.store import Store
from tests.support.host.deliveries import HOUR_S, Sent, Truth, messages

ALL = Selection(HOUR_S * 10**6, (HOUR_S + 3600) * 10**6)
LATER_S = HOUR_S + 3600 + 700
PRUNED_S = HOUR_S + 3 * 86400


def quiet(_made: object) -> None:
    """Say nothing."""


def put(store: Store, one: Sent) -> None:
    """Store a message as a batch of its own."""
    batch = Batch({})
    for delivery in decode(one.data, now_ns=time.time_ns()):
        batch.add(delivery)
    land(store, batch, new_batch_id())


def total(store: Store, before: Callable[[], object] | None = None) -> int:
    """The sum of an answer; `before` is called once its files have been chosen."""
    with duck.connect(store) as connection:
        question = Question(store, ALL, connection)
        if before is not None:
            before()
        return question.total()


@contextmanager
def again_and_again(do: Callable[[], object]) -> Iterator[list[BaseException]]:
    """Do something all the time, in a thread; what it raised."""
    errors: list[BaseException] = []
    over = threading.Event()

    def run() -> None:
        while not over.is_set() and not errors:
            try:
                do()
            except BaseException as error:
                errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield errors
    finally:
        over.set()
        thread.join()


def test_an_answer_survives_the_compaction_of_its_files(any_store: Store) -> None:
    truth = Truth()
    for one in messages(truth):
        put(any_store, one)
    whole = sum(truth.own.values())
    assert total(any_store, lambda: compact(any_store, now_s=LATER_S, say=quiet)) == whole
    assert total(any_store) == whole


def test_answers_during_compactions_are_whole(store: Store) -> None:
    """Each has what landed before it, some of what lands during it, and no window twice."""
    truth = Truth()
    sums = [0]
    answers: list[tuple[int, int]] = []

    def ask() -> None:
        least = sums[-1]
        answers.append((least, total(store)))

    with again_and_again(ask) as errors:
        for one in messages(truth, hosts=2, minutes=10):
            put(store, one)
            sums.append(sum(truth.own.values()))
            compact(store, now_s=LATER_S, say=quiet)
    assert errors == []
    assert total(store) == sums[-1]
    assert len({answer for _, answer in answers}) > 3
    for least, answer in answers:
        assert answer in sums
        assert answer >= least


def test_a_question_about_a_day_that_is_pruned_is_an_error(any_store: Store) -> None:
    """No sum of what is left: that would be a wrong answer."""
    for one in messages(Truth()):
        put(any_store, one)
    compact(any_store, now_s=LATER_S, say=quiet)
    with pytest.raises(duck.QueryError, match="removed while it was read"):
        total(any_store, lambda: prune(any_store, 1, PRUNED_S))


@pytest.mark.parametrize("compacted", [True, False])
def test_answers_while_a_day_is_pruned_are_whole_or_errors(
    store: Store, compacted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked after each file that goes."""
    truth = Truth()
    for one in messages(truth, hosts=2, minutes=2):
        put(store, one)
    if compacted:
        compact(store, now_s=LATER_S, say=quiet)
    delete = Directory.delete
    answers, refusals = [total(store)], set()

    def delete_and_ask(self: Directory, name: str) -> None:
        delete(self, name)
        try:
            answers.append(total(store))
        except duck.QueryError as error:
            refusals.add(str(error))

    monkeypatch.setattr(Directory, "delete", delete_and_ask)
    assert prune(store, 1, PRUNED_S) == ["2026-11-22"]
    assert {*answers} == {sum(truth.own.values()), 0}
    assert all("removed while it was read" in words for words in refusals)
