"""Names that were not found, with those that may have been meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, TypeVar

__all__ = ["Named", "unknown_name"]

_Value = TypeVar("_Value")


def unknown_name(known: Iterable[str], name: object, problem: str) -> KeyError:
    """The error of a name that is not known: `"x.o: unknown map 'cuonts'; similar: counts"`."""
    from difflib import get_close_matches

    close = get_close_matches(name, [*known]) if isinstance(name, str) else []
    similar = "similar: " + ", ".join(close) if close else "no similar name"
    return KeyError(f"{problem} {name!r}; {similar}")


class Named(dict[str, _Value]):
    """Values by name; a name that is not known is a KeyError that helps with its spelling.

    Attributes:
        problem: begins the error: `"object 'x': unknown map"`.
    """

    problem = "unknown name"

    def __missing__(self, name: str) -> NoReturn:
        raise unknown_name(self, name, self.problem)
