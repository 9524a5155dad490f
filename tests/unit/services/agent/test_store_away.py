"""A store that stays away: what an agent does for it, counted, by a clock of its own."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest

from purebpf.services.agent.outcome import Outcome
from purebpf.services.agent.sender import Backoff, Sender
from purebpf.services.agent.spool import Spool, file_name

WINDOW_S = 60
_MINUTES = 100


class Away:
    """A sink that cannot be reached."""

    def __init__(self) -> None:
        self.tries: list[str] = []

    def send(self, name: str, data: bytes) -> Outcome:
        assert data
        self.tries.append(name)
        return Outcome(why="connection refused")


class Minutes:
    """In the place of the event that ends the thread: sleeps by writing windows of that time."""

    def __init__(self, spool: Spool, tries: list[str]) -> None:
        self.windows = 0
        self.tries_by_window: list[int] = []
        self._spool, self._tries = spool, tries
        self._now_s = 0.0
        self.write()

    def is_set(self) -> bool:
        return self.windows >= _MINUTES

    def wait(self, seconds: float) -> None:
        self._now_s += seconds
        while self.windows * WINDOW_S <= self._now_s and not self.is_set():
            self.write()

    def write(self) -> None:
        self.tries_by_window.append(len(self._tries))
        name = file_name((1_900_000_000 + WINDOW_S * self.windows) * 10**9, "cpu", "0" * 8, 0)
        assert self._spool.add(name, gzip.compress(b"window"))
        self.windows += 1


def test_a_store_that_stays_away_costs_no_more_with_each_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred windows wait at the end: tries come no more often, and look at one file."""
    monkeypatch.setattr(
        "purebpf.services.agent.spool._sync", lambda _: None
    )  # no disk is in question
    monkeypatch.setattr("os.fsync", lambda _: None)
    read: list[str] = []
    take = Spool.read

    def count(spool: Spool, sink: str, name: str) -> bytes | None:
        read.append(name)
        return take(spool, sink, name)

    monkeypatch.setattr(Spool, "read", count)
    spool = Spool(str(tmp_path / "spool"), ["store"], max_bytes=1 << 20, max_age_s=1e9)
    away = Away()
    said: list[str] = []
    sender = Sender("store", away, spool, say=said.append)
    sender._backoff = Backoff(lambda _, most: most)  # noqa: SLF001 - the longest of each
    minutes = Minutes(spool, away.tries)
    sender._over = minutes  # type: ignore[assignment]  # noqa: SLF001
    sender._run()  # noqa: SLF001
    assert spool.waiting("store") == _MINUTES
    assert read == away.tries, "each try reads the window that it sends, and no other"
    assert away.tries == sorted(away.tries), "the newest"
    tries = [after - before for before, after in pairwise(minutes.tries_by_window)]
    assert sum(tries[:10]) <= 10, "a second, two, four, ... five minutes"
    for at in range(10, _MINUTES - 10, 10):
        assert sum(tries[at : at + 10]) <= 2, "every five minutes, however many wait"
    assert said == ["sink store: connection refused; will try again"]
