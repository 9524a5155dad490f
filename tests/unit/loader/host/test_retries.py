"""Looking again costs little, however often something is missing."""

from __future__ import annotations

from purebpf.loader.host.backoff import Retries


def test_due_after_powers_of_two():
    retries = Retries()
    assert [miss for miss in range(1, 40) if retries.due("a")] == [1, 2, 4, 8, 16, 32]


def test_keys_are_apart_and_reset_begins_again():
    retries = Retries()
    assert [retries.due("a"), retries.due("a"), retries.due("a"), retries.due("b")] == [
        True, True, False, True,
    ]  # fmt: skip
    retries.reset("a")
    retries.reset("never")
    assert retries.due("a")
    assert not [retries.due("b"), retries.due("b")][1]


def test_misses_of_a_million_keys_are_not_all_kept():
    retries = Retries()
    for key in range(200_000):
        assert retries.due(key)
    assert len(retries._misses) <= 1 << 16
