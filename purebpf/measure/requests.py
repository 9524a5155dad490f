"""From a request to a narrower one: an option that both have is copied by its name."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

__all__ = ["narrow"]

Request = TypeVar("Request")


def narrow(
    kind: type[Request], source: object, *, defaults: Collection[str] = (), **others: object
) -> Request:
    """Make a named tuple of the attributes that `source` has of its fields, and of `others`.

    Args:
        kind: the named tuple.
        source: the wider request.
        defaults: fields that `source` lacks, and that keep their defaults.
        others: values of more fields.

    Raises:
        TypeError: a field has no value and is not in `defaults`, or a name in `defaults` is not a
            field that `source` lacks. The caller was not changed with one of the two types.
    """
    fields = [name for name in vars(kind)["_fields"] if name not in others]
    shared = {name: getattr(source, name) for name in fields if hasattr(source, name)}
    wrong = {*fields}.difference(shared).symmetric_difference(defaults)
    if wrong:
        names = ", ".join(sorted(wrong))
        raise TypeError(f"{kind.__qualname__} from {type(source).__qualname__}: check {names}")
    return kind(**shared, **others)
