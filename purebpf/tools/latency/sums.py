"""Rows of the kernel's map, put together and named. Pure."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from purebpf.tools.latency.calls import Branch, LatencyRow
from purebpf.tools.latency.request import Grouping
from purebpf.tools.latency.scale import Scale
from purebpf.tuples import NamedTuple

__all__ = ["Key", "Sum", "branches", "differences", "make_rows", "merge"]

Key = tuple[int, int, int]
"""The number of a function, and the two words of its group."""


class Sum(NamedTuple):
    """Calls of one function and group."""

    calls: int
    total_ns: int
    least_ns: int
    most_ns: int
    comm: str
    buckets: tuple[int, ...]


def merge(items: Iterable[tuple[Any, Any]]) -> dict[Key, Sum]:
    """The `struct row_key` and `struct row` of each CPU, added up."""
    sums: dict[Key, Sum] = {}
    for key, row in items:
        group_key = (key.function, *key.group)
        new = Sum(row.calls, row.total_ns, row.least_ns, row.most_ns, row.comm, tuple(row.buckets))
        old = sums.get(group_key)
        sums[group_key] = new if old is None else _add(old, new)
    return sums


def _add(one: Sum, other: Sum) -> Sum:
    return Sum(
        one.calls + other.calls,
        one.total_ns + other.total_ns,
        min(one.least_ns, other.least_ns),
        max(one.most_ns, other.most_ns),
        one.comm or other.comm,
        tuple(map(sum, zip(one.buckets, other.buckets, strict=True))),
    )


def differences(now: Mapping[Key, Sum], before: Mapping[Key, Sum], scale: Scale) -> dict[Key, Sum]:
    """Return the differences between two looks; the buckets bound the shortest and the longest."""
    changed = {}
    for key, total in now.items():
        earlier = before.get(key)
        if earlier is None:
            changed[key] = total
        elif total.calls > earlier.calls:
            buckets = tuple(
                count - less for count, less in zip(total.buckets, earlier.buckets, strict=True)
            )
            least_ns, most_ns = scale.limits_ns(buckets)
            changed[key] = Sum(
                total.calls - earlier.calls,
                total.total_ns - earlier.total_ns,
                max(least_ns, total.least_ns),
                min(most_ns, total.most_ns),
                total.comm,
                buckets,
            )
    return changed


def make_rows(
    sums: Mapping[Key, Sum],
    functions: Sequence[str],
    grouping: Grouping,
    cgroup: Callable[[int], str],
) -> tuple[LatencyRow, ...]:
    """Return the sums with names, ordered by time, or else by number, the greatest first.

    Args:
        sums: as `merge` gives them.
        functions: names, by number.
        grouping: the meaning of the words of a group.
        cgroup: the label of one, by its number.
    """
    rows = [
        LatencyRow(
            functions[key[0]],
            *_group(key, total, grouping, cgroup),
            total.calls,
            total.total_ns,
            total.least_ns,
            total.most_ns,
            total.buckets,
        )
        for key, total in sums.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.total_ns, -row.calls, row.function, row.group)))


def _group(
    key: Key, total: Sum, grouping: Grouping, cgroup: Callable[[int], str]
) -> tuple[str, int, int]:
    """The name of a group, and the process and thread that it is."""
    _, word, more = key
    match grouping.kind:
        case "process":
            return total.comm, word, 0
        case "thread":
            return total.comm, word >> 32, word & 0xFFFFFFFF
        case "comm":
            name = struct.pack("=QQ", word, more).partition(b"\0")[0]
            return name.decode("utf-8", "backslashreplace"), 0, 0
        case "cgroup":
            return cgroup(word) or "/", 0, 0
        case "ret" | "arg":
            sign = grouping.signed << grouping.bits - 1
            return str((word ^ sign) - sign), 0, 0
        case "cpu":
            return str(word), 0, 0
    return "", 0, 0


def branches(nodes: Mapping[int, Any], functions: Sequence[str]) -> tuple[Branch, ...]:
    """Return every `struct node` by its whole path, callers before the functions they call, the
    longest first.

    A call that has not returned has no node; those that it made are below "[in flight]".
    """
    children: dict[int, list[int]] = {}
    for path, node in nodes.items():
        children.setdefault(node.parent, []).append(path)
    roots = [parent for parent in children if parent not in nodes]
    return tuple(_walk(nodes, children, functions, roots))


def _walk(
    nodes: Mapping[int, Any],
    children: Mapping[int, list[int]],
    functions: Sequence[str],
    roots: Iterable[int],
) -> Iterator[Branch]:
    def order(path: int) -> tuple[int, str]:
        return nodes[path].total_ns, functions[nodes[path].function]

    stack: list[tuple[int, tuple[str, ...]]] = []
    for root in roots:
        outer = () if root == 0 else ("[in flight]",)
        stack += ((path, outer) for path in sorted(children[root], key=order))
    while stack:
        path, callers = stack.pop()
        node = nodes[path]
        names = (*callers, functions[node.function])
        yield Branch(names, node.calls, node.total_ns, node.self_ns)
        stack += ((below, names) for below in sorted(children.get(path, ()), key=order))
