"""Parameters of which CI takes a few, and `make nightly` all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

__all__ = ["by_day"]


def by_day(cases: Iterable[Any], day: Collection[Any]) -> list[Any]:
    """Return all cases for `parametrize`; the ones that are not in `day` are marked `nightly`.

    For cases that take one path through the code. `day` has one of each path.

    Raises:
        ValueError: `day` has one that is no case.
    """
    every = list(cases)
    if missing := [case for case in day if case not in every]:
        raise ValueError(f"no such case: {missing}")
    return [
        case if case in day else pytest.param(case, marks=pytest.mark.nightly) for case in every
    ]
