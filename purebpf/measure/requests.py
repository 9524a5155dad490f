"""From a request to a narrower one: an option that both have is copied by its name."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["narrow"]

Request = TypeVar("Request")


def narrow(kind: type[Request], source: object, **others: object) -> Request:
    """Make a named tuple of the attributes that `source` has of its fields, and of `others`.

    Fields that are in neither keep their defaults.
    """
    fields = [name for name in kind.__annotations__ if name not in others]
    shared = {name: getattr(source, name) for name in fields if hasattr(source, name)}
    return kind(**shared, **others)
