"""Values of maps that a predicate has read already.

The block of `/@start[tid]/` reads `@start[tid]` once more as a rule. It need not look the key up
again, until a statement may change the map.
"""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.script import tree
from purebpf.script.lowering.frame import Place, calls_user_stack
from purebpf.script.map_info import MapInfo
from purebpf.tuples import NamedTuple

__all__ = ["KnownValue", "find_known_value", "is_same_key"]

_STABLE = frozenset({"pid", "tid", "initial pid", "initial tid", "curtask"})
"""Builtins that stay the same while a block runs."""
_CHANGES = frozenset({"delete", "clear", "zero"})


class KnownValue(NamedTuple):
    """A value of a map that lies in `place`."""

    name: str
    key: tree.Expression
    place: Place


def find_known_value(probe: tree.Probe, maps: Mapping[str, MapInfo]) -> tuple[tree.Map, int] | None:
    """Return the map element that a predicate reads, and how many statements leave it alone.

    None: the predicate is no number of a map, its key may change, or nothing would read it.
    """
    read = probe.predicate
    if not isinstance(read, tree.Map) or read.key is None or not is_same_key(read.key, read.key):
        return None
    info = maps[read.name]
    if info.is_aggregate or info.is_scalar or info.value is None or not info.value.is_scalar:
        return None
    if calls_user_stack(probe):  # which leaves little memory
        return None
    number, is_read = 0, False
    for statement in probe.body.statements:
        parts = list(tree.walk(statement))
        if any(_may_change(part, read.name) for part in parts):
            break
        number += 1
        is_read |= any(isinstance(part, tree.Map) and part.name == read.name for part in parts)
    return (read, number) if is_read else None


def _may_change(node: tree.Node, name: str) -> bool:
    match node:
        case tree.Assign(target=tree.Map(name=target)):
            return target == name
        case tree.Step(target=tree.Map(name=target)):
            return target == name
        case tree.Call(name=function):
            return function in _CHANGES
    return False


def is_same_key(one: tree.Expression, other: tree.Expression) -> bool:
    """Return True if two keys have the same value at all times of one run of a block."""
    match one, other:
        case tree.Integer(value=first), tree.Integer(value=second):
            return first == second
        case tree.Name(name=first_name), tree.Name(name=second_name):
            return first_name == second_name and first_name in _STABLE
        case tree.Tuple(items=items), tree.Tuple(items=others):
            return len(items) == len(others) and all(map(is_same_key, items, others))
    return False
