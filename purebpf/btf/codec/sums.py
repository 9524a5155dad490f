"""One value for the counts of every CPU."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, TypeVar, cast

__all__ = ["summed"]

_Value = TypeVar("_Value")


def summed(values: Iterable[_Value]) -> _Value:
    """Add up values of a per-CPU map: `summed(obj.maps["stats"][0]).packets`.

    Numbers are added, also inside structs and arrays. Other values (text, bytes, flags, members of
    an enum) have to be the same everywhere.

    Args:
        values: of the same type; one at least.

    Returns:
        A value of that type.

    Raises:
        TypeError: something that differs cannot be added.
        ValueError: there are no values, or arrays have different lengths.
    """
    rows = tuple(values)
    if not rows:
        raise ValueError("there are no values to add up")
    return cast("_Value", _sum(rows, ""))


def _sum(values: Sequence[Any], where: str) -> Any:
    first = values[0]
    if isinstance(first, int | float) and not isinstance(first, bool | Enum):
        return sum(values)
    if isinstance(first, tuple | list):
        names = getattr(first, "_fields", None) or [f"[{at}]" for at in range(len(first))]
        columns = zip(names, zip(*values, strict=True), strict=True)
        parts = [_sum(column, f"{where}.{name}") for name, column in columns]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        of_fields = {}
        for field in dataclasses.fields(first):
            column = [getattr(value, field.name) for value in values]
            of_fields[field.name] = _sum(column, f"{where}.{field.name}")
        return dataclasses.replace(first, **of_fields)
    other = next((value for value in values if value != first), None)
    if other is not None:
        named = f" of {where.replace('.[', '[').lstrip('.')}" if where else ""
        raise TypeError(f"{first!r} and {other!r}{named} cannot be added: they are not numbers")
    return first
