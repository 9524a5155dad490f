"""Names of cgroups by the cgroup IDs in events."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice

from purebpf.loader.host.cgroups import paths_by_id
from purebpf.symbols.cgroup_names import cgroup_name

__all__ = ["CgroupIds"]

_PAUSE_S = 0.5
"""Between two walks over all cgroups, for numbers of those that came since."""
_SHARE = 10
"""A pause is so many times as long as a walk: users may make any number of cgroups of their own."""
_MOST = 1 << 17
"""Labels that are kept."""


class CgroupIds:
    """Labels of cgroups v2 (`purebpf.symbols.cgroup_names`) by number.

    Names of cgroups that were removed since the look-up stay in memory, up to 131,072.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._labels: dict[int, str] = {}
        self._next_s = 0.0

    def label(self, number: int) -> str:
        """`docker:0123456789ab`, `nginx.service`, `/a/b`; "" for the root, or if unknown."""
        if number not in self._labels and (begun_s := self._clock()) >= self._next_s:
            if len(self._labels) >= _MOST:
                self._labels.clear()
            for cgroup, path in islice(paths_by_id().items(), _MOST):
                if cgroup not in self._labels:
                    self._labels[cgroup] = cgroup_name(f"0::{path}").label
            now_s = self._clock()
            self._next_s = now_s + max(_PAUSE_S, _SHARE * (now_s - begun_s))
        return self._labels.get(number, "")
