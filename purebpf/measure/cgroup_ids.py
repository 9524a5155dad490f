"""What the cgroups are called that events have the numbers of."""

from __future__ import annotations

import time

from purebpf.kernel.host.cgroups import paths_by_id
from purebpf.symbols.cgroup_names import cgroup_name

__all__ = ["CgroupIds"]

_PAUSE_S = 0.5
"""Between two walks over all cgroups, for numbers of those that came since."""


class CgroupIds:
    """Labels of cgroups v2 (`purebpf.symbols.cgroup_names`) by number.

    Those of cgroups that were removed since they were looked up stay known.
    """

    def __init__(self) -> None:
        self._labels: dict[int, str] = {}
        self._next_s = 0.0

    def label(self, number: int) -> str:
        """`docker:0123456789ab`, `nginx.service`, `/a/b`; "" for the root, or if unknown."""
        if number not in self._labels and (now := time.monotonic()) >= self._next_s:
            for cgroup, path in paths_by_id().items():
                if cgroup not in self._labels:
                    self._labels[cgroup] = cgroup_name(f"0::{path}").label
            self._next_s = now + _PAUSE_S
        return self._labels.get(number, "")
