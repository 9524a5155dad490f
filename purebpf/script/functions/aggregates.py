"""Types of count(), hist() and the other functions that are assigned to a map."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.script import tree
from purebpf.script.checking import Checking
from purebpf.script.functions.arguments import check_count, literal_argument, refuse
from purebpf.script.types import Type, spell

__all__ = ["MAP_FUNCTIONS", "aggregate_type"]

MAP_FUNCTIONS: Mapping[str, tuple[int, int]] = {
    "count": (0, 0), "sum": (1, 1), "avg": (1, 1), "min": (1, 1), "max": (1, 1), "stats": (1, 1),
    "hist": (1, 2), "lhist": (4, 4), "tseries": (3, 4),
}  # fmt: skip
"""Functions that are assigned to a map, and how many arguments they take."""
_MOST_BUCKETS = 1000
_MOST_INTERVALS = 1_000_000
_SERIES = ("avg", "max", "min", "sum")


def aggregate_type(check: Checking, node: tree.Call) -> Type:
    """Return the type of a map to which count(), hist() or another map function is assigned.

    Raises:
        ScriptError: wrong arguments.
    """
    check_count(node, *MAP_FUNCTIONS[node.name])
    if node.name == "count":
        return Type("count", 8)
    type_ = check.infer(node.arguments[0])
    if type_ is not None and type_.kind not in ("int", "bool", "ptr"):
        message = f"{node.name}() only supports integer arguments ({spell(type_)} provided)"
        raise refuse(node, message)
    if node.name == "hist":
        bits = 0
        if len(node.arguments) > 1:
            bits = check.number(node.arguments[1], "the bits of hist()")
        if not 0 <= bits <= 5:
            raise refuse(node, f"hist: bits {bits} must be 0..5")
        return Type("hist", 8, numbers=(bits,))
    if node.name == "lhist":
        return _linear(check, node)
    is_signed = type_ is not None and type_.signed
    if node.name == "tseries":
        return _series(check, node, is_signed=is_signed)
    return Type(node.name, 8, is_signed)


def _linear(check: Checking, node: tree.Call) -> Type:
    low, high, step = (check.number(item, "lhist() bounds") for item in node.arguments[1:])
    if step <= 0:
        raise refuse(node, f"lhist() step must be >= 1 ({step} provided)")
    if low > high:
        raise refuse(node, f"lhist() min must be less than max (provided min {low} and max {high})")
    if (high - low) // step > _MOST_BUCKETS:
        raise refuse(node, f"lhist() too many buckets, must be <= {_MOST_BUCKETS}")
    return Type("lhist", 8, numbers=(low, high, step))


def _series(check: Checking, node: tree.Call, *, is_signed: bool) -> Type:
    length, count = (check.number(item, "tseries() intervals") for item in node.arguments[1:3])
    if length < 1:
        raise refuse(node, f"tseries() interval_ns must be >= 1 ({length} provided)")
    if not 1 <= count <= _MOST_INTERVALS:
        side = ">= 1" if count < 1 else f"< {_MOST_INTERVALS}"
        raise refuse(node, f"tseries() num_intervals must be {side} ({count} provided)")
    text = literal_argument(check, node, 3) if len(node.arguments) == 4 else ""
    if text and text not in _SERIES:
        message = "tseries() expects one of the following aggregation functions: "
        raise refuse(node, f'{message}{", ".join(_SERIES)} ("{text}" provided)')
    return Type("tseries", 8, is_signed, numbers=(length, count), text=text)
