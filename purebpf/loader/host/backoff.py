"""Times for retries of a failed search: after 1, 2, 4, 8... misses."""

from __future__ import annotations

from collections.abc import Hashable

__all__ = ["Retries"]

_KEEP = 1 << 16
"""Keys: a live page runs for weeks, and processes come and go."""


class Retries:
    """Counts misses by key, so that looking again costs little also with many of them.

    A stack walked without frame pointers is full of addresses that nothing maps; reading
    /proc/PID/maps for each would cost more than the profile.
    """

    def __init__(self) -> None:
        self._misses: dict[Hashable, int] = {}

    def due(self, key: Hashable) -> bool:
        """Count a miss; whether it is time to look again."""
        if len(self._misses) >= _KEEP and key not in self._misses:
            self._misses.clear()
        misses = self._misses[key] = self._misses.get(key, 0) + 1
        return misses & (misses - 1) == 0

    def reset(self, key: Hashable) -> None:
        """Looking again was worth it: the next miss is the first."""
        self._misses.pop(key, None)
