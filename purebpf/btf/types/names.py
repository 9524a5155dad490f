"""C names as Python names."""

from __future__ import annotations

from collections.abc import Iterable
from keyword import iskeyword


def legal_names(names: Iterable[str], taken: frozenset[str] = frozenset()) -> list[str]:
    """`names` made usable as attributes, in order and all different.

    Keywords, names in `taken` and names that Python reserves (`__x__`, `_x_`, `mro`) get an
    underscore at the end; a name that is not an identifier becomes `_N`, its place; the second of
    two equal names gets `_2`.
    """
    legal: dict[str, None] = {}
    counts: dict[str, int] = {}  # from where to go on: a hostile type has one name 65,535 times
    for place, name in enumerate(names):
        plain = name if name.isidentifier() and name.isascii() else f"_{place}"
        if iskeyword(plain) or plain in taken or _is_reserved(plain):
            plain += "_"
        unique, count = plain, counts.get(plain, 1)
        while unique in legal:
            count += 1
            unique = f"{plain}_{count}"
        legal[unique] = None
        counts[plain] = count
    return list(legal)


def printable(name: str) -> str:
    """`name` with escapes for bytes that were not UTF-8, printable and fit to name a class."""
    return name.encode("utf-8", "backslashreplace").decode()


def _is_reserved(name: str) -> bool:
    return name == "mro" or (len(name) > 2 and name[0] == name[-1] == "_")
