"""Names that were not found, with those that may have been meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, TypeVar

__all__ = ["Named", "suggest", "unknown_name"]

_Value = TypeVar("_Value")


def unknown_name(known: Iterable[str], name: object, problem: str) -> KeyError:
    """The error of a name that is not known: `"x.o: unknown map 'cuonts'; similar: counts"`."""
    hint = suggest(name, known) if isinstance(name, str) else ""
    return KeyError(f"{problem} {name!r}; {hint or 'no similar name'}")


def suggest(name: str, known: Iterable[str]) -> str:
    """Return "similar: a, b", at most three of them, or "" if no known name is similar."""
    from difflib import get_close_matches

    close = get_close_matches(name, [*known])
    return f"similar: {', '.join(close)}" if close else ""


class Named(dict[str, _Value]):
    """Values by name; a name that is not known is a KeyError that helps with its spelling.

    Attributes:
        problem: begins the error: `"object 'x': unknown map"`.
    """

    problem = "unknown name"

    def __missing__(self, name: str) -> NoReturn:
        raise unknown_name(self, name, self.problem)
