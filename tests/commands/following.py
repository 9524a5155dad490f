"""What a command that follows events shows of a program, as its JSON has it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from purebpf.measure.event_session import EventSession
from purebpf.measure.run import prepare, run

__all__ = ["follow"]


def follow(
    make: Callable[[int], EventSession[Any]],
    show: Callable[[Iterable[Any]], Iterable[str]],
    words: tuple[str, ...],
    notes: tuple[str, ...] = (),
) -> list[dict[str, Any]]:
    """Run `words` to their end; the events as `show` spells them. Nothing was lost but `notes`."""
    lines: list[str] = []
    with prepare(make, words) as (session, ends):
        last = run(session, ends, partial(_take, session, show, lines))
        ends.status()
    lines += show(last.events)
    lost = {cause.name: cause.lost for cause in last.loss.causes if cause.lost}
    assert not lost.keys() - set(notes), lost
    return [json.loads(line) for line in lines]


def _take(
    session: EventSession[Any], show: Callable[[Iterable[Any]], Iterable[str]], lines: list[str]
) -> None:
    lines += show(session.drain())
