"""What a command line asks for, as the named tuples that its `parse` returns."""

from __future__ import annotations

from typing import Any

__all__ = ["asking"]


def asking(defaults: tuple[Any, ...], **fields: object) -> tuple[Any, ...]:
    """The defaults with other values in some fields, each in every tuple that has it."""
    known = {name for each in defaults for name in each._fields}
    assert known >= {*fields}, f"no such fields: {fields.keys() - known}"
    return tuple(
        each._replace(**{name: fields[name] for name in each._fields if name in fields})
        for each in defaults
    )
