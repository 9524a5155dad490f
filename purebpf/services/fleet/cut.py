"""Drops parts that are too small to be seen, so that a page of many hosts stays small. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from purebpf.services.fleet.answers import FramePlace, Numbered

__all__ = ["SMALLEST", "cut"]

SMALLEST = 0.0005
"""The part of the whole below which a frame and what it called become one frame."""
_MANY = 8192
_SMALL = FramePlace(f"[less than {100 * SMALLEST:g} %]", "", "", "", -1)


class _Node(NamedTuple):
    """A frame below its caller, which is another node by number; a service has none."""

    caller: int
    step: Hashable


def cut(*sides: Sequence[Numbered], check: Callable[[], object] = bool) -> list[Sequence[Numbered]]:
    """Return the same stacks, as long as there are few; else without the parts that are small on
    every side.

    Dropped parts keep their weight, below their caller, in a frame that says so. The tree is made
    level by level, from the root, below the nodes that are kept: a level has few of these. `check`
    is called for each level, and may raise.
    """
    if sum(map(len, sides)) <= _MANY:
        return list(sides)
    wholes = [sum(weighted.value for weighted in side) or 1 for side in sides]
    services = {weighted.service: None for side in sides for weighted in side}
    numbers = {service: number for number, service in enumerate(services)}
    # of each stack that is kept so far, its node
    nodes = [{at: numbers[one.service] for at, one in enumerate(side)} for side in sides]
    depths: list[dict[int, int]] = [{} for _ in sides]  # of those that are cut, frames that stay
    depth = 0
    while any(nodes):
        check()
        level: dict[_Node, int] = {}
        sums = [
            _descend(side, its_nodes, depth, level)
            for side, its_nodes in zip(sides, nodes, strict=True)
        ]
        large = {
            number
            for values, whole in zip(sums, wholes, strict=True)
            for number, value in values.items()
            if value / whole >= SMALLEST
        }
        for its_nodes, its_depths in zip(nodes, depths, strict=True):
            for at in [at for at, number in its_nodes.items() if number not in large]:
                del its_nodes[at]
                its_depths[at] = depth
        depth += 1
    return [_shortened(side, its_depths) for side, its_depths in zip(sides, depths, strict=True)]


def _descend(
    side: Sequence[Numbered], nodes: dict[int, int], depth: int, level: dict[_Node, int]
) -> dict[int, int]:
    """Go to the node below for each stack that has one; return the sums of these nodes."""
    sums: dict[int, int] = {}
    for at in tuple(nodes):
        frames = side[at].frames
        if depth >= len(frames):
            del nodes[at]
            continue
        node = _Node(nodes[at], frames[-1 - depth])
        number = nodes[at] = level.setdefault(node, len(level))
        sums[number] = sums.get(number, 0) + side[at].value
    return sums


def _shortened(side: Sequence[Numbered], depths: dict[int, int]) -> list[Numbered]:
    sums: dict[tuple[str, tuple[int | FramePlace, ...]], int] = {}
    for at, (service, frames, value) in enumerate(side):
        kept = depths.get(at)
        if kept is not None:
            frames = (_SMALL, *frames[len(frames) - kept :])
        sums[service, frames] = sums.get((service, frames), 0) + value
    return [Numbered(*key, value) for key, value in sums.items()]
