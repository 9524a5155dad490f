"""Values of JSON that every reader keeps, and documents that name their schema. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

__all__ = ["exact", "json_object", "json_value"]

_Value = TypeVar("_Value")
_EXACT = 1 << 53
"""JavaScript, jq and others keep whole numbers below this one."""


def json_object(name: str, fields: Mapping[str, object], *, version: int = 1) -> dict[str, object]:
    """Return the document of a command: `fields` behind the name and the version of its schema.

    Named tuples become objects, and numbers above 2^53 hexadecimal text (`exact`).

    Args:
        name: the layout, usually the command: "stat".
        fields: the members.
        version: grows when a member changes its meaning.
    """
    return {"schema": f"purebpf.{name}/{version}", **_members(fields)}


def exact(value: _Value) -> _Value | str:
    """Return a number that every reader of JSON keeps; a larger one, such as an address, in hex."""
    return hex(value) if isinstance(value, int) and abs(value) > _EXACT else value


def json_value(value: Any) -> Any:
    """Return a value that JSON can hold: `exact` numbers, named tuples as objects, bytes as hex."""
    if isinstance(value, bytes):
        return value.hex()
    if hasattr(value, "_asdict"):
        return _members(value._asdict())
    if isinstance(value, Mapping):
        return _members(value)
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    return exact(value)


def _members(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: json_value(value) for name, value in fields.items()}
