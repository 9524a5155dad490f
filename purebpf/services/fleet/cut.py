"""Drops parts that are too small to be seen, so that a page of many hosts stays small. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.services.fleet.answers import FramePlace, Weighted

__all__ = ["SMALLEST", "cut"]

SMALLEST = 0.0005
"""The part of the whole below which a frame and what it called become one frame."""
_MANY = 8192
_SMALL = FramePlace(f"[less than {100 * SMALLEST:g} %]", "", "", "", -1)


def cut(*sides: Sequence[Weighted]) -> list[Sequence[Weighted]]:
    """Return the same stacks, as long as there are few; else without the parts that are small on
    every side.

    Dropped parts keep their weight, below their caller, in a frame that says so.
    """
    if sum(map(len, sides)) <= _MANY:
        return list(sides)
    nodes: dict[tuple[int, str | FramePlace], int] = {}
    shares: list[float] = []
    paths = [[_path(nodes, shares, weighted) for weighted in side] for side in sides]
    for side, its_paths in zip(sides, paths, strict=True):
        own = [0] * len(nodes)
        for weighted, path in zip(side, its_paths, strict=True):
            for node in path:
                own[node] += weighted.value
        whole = sum(weighted.value for weighted in side) or 1
        shares = [max(share, value / whole) for share, value in zip(shares, own, strict=True)]
    return [
        _shortened(side, its_paths, shares) for side, its_paths in zip(sides, paths, strict=True)
    ]


def _path(
    nodes: dict[tuple[int, str | FramePlace], int], shares: list[float], weighted: Weighted
) -> list[int]:
    """The numbers of a stack's nodes, its service first, then root to leaf."""
    path = []
    node = -1
    steps: tuple[str | FramePlace, ...] = (weighted.service, *reversed(weighted.frames))
    for step in steps:
        node = nodes.setdefault((node, step), len(nodes))
        if node == len(shares):
            shares.append(0.0)
        path.append(node)
    return path


def _shortened(
    side: Sequence[Weighted], paths: Sequence[Sequence[int]], shares: Sequence[float]
) -> list[Weighted]:
    sums: dict[tuple[str, tuple[FramePlace, ...]], int] = {}
    for (service, frames, value), path in zip(side, paths, strict=True):
        # the first is the service, which stays
        kept = next((i for i, node in enumerate(path[1:]) if shares[node] < SMALLEST), None)
        if kept is not None:
            frames = (_SMALL, *frames[len(frames) - kept :])
        sums[service, frames] = sums.get((service, frames), 0) + value
    return [Weighted(*key, value) for key, value in sums.items()]
