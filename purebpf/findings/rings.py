"""Rings of threads that wait for each other: deadlocks. Pure."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["find_ring"]


def find_ring(waits_for: Mapping[int, int]) -> list[int]:
    """Return threads that wait for the next one, the last for the first; none if there is no ring.

    Args:
        waits_for: the thread that a waiting thread waits for, by TID.
    """
    for thread, holder in waits_for.items():
        path, at = [thread], holder
        while at in waits_for and at not in path:
            path.append(at)
            at = waits_for[at]
        if at in path:
            ring = path[path.index(at) :]
            if len(ring) > 1:
                return ring
    return []
