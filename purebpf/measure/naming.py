"""Looking names up while a run goes on, until the run ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from purebpf.measure.stop import Stop
    from purebpf.symbols.budget import Budget

__all__ = ["naming_until"]


@contextmanager
def naming_until(stop: Stop, budget: Budget) -> Iterator[None]:
    """Return a context for names that are displayed while the run goes on: its end leaves the rest
    unnamed.

    After this context, as for the result, names are looked up as before.
    """
    try:
        with stop.calling(budget.stop):
            yield
    finally:
        budget.resume()
