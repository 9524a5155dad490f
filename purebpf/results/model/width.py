"""The width of a text in columns of a terminal. Pure.

East Asian wide and fullwidth characters take two (Unicode Standard Annex 11), combining marks and
format characters none.
"""

from __future__ import annotations

__all__ = ["WIDTH", "cut", "cut_start", "display_width", "fold", "pad"]

WIDTH = 80
"""Columns of a text that is not shown on a terminal of another width."""

_WIDE = frozenset("WF")
_NO_WIDTH = frozenset(("Mn", "Me", "Cf"))
_MORE = "..."
_INDENT = 4


def display_width(text: str) -> int:
    """Columns of a text without control characters."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def cut(text: str, width: int) -> str:
    """The text if it takes at most `width` columns, else its beginning and `...`."""
    if display_width(text) <= width:
        return text
    more = _MORE[: max(width, 0)]
    return _beginning(text, width - len(more)) + more


def cut_start(text: str, width: int) -> str:
    """The text if it takes at most `width` columns, else `...` and its end."""
    if display_width(text) <= width:
        return text
    more = _MORE[: max(width, 0)]
    return more + _beginning(text[::-1], width - len(more))[::-1]


def fold(line: str, width: int | None) -> str:
    """The text in lines of at most `width` columns, all but the first indented; None: as it is.

    It ends with a newline if `line` does.
    """
    text = line.rstrip("\n")
    if width is None or display_width(text) <= width:
        return line
    import textwrap  # 2 ms that short lines need not pay

    indent = " " * (len(text) - len(text.lstrip()) + _INDENT)
    kept = textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False)
    return "\n".join(cut(part, width) for part in kept) + line[len(text) :]


def _beginning(text: str, width: int) -> str:
    kept = []
    for char in text:
        width -= _columns(char)
        if width < 0:
            break
        kept.append(char)
    return "".join(kept)


def pad(text: str, width: int) -> str:
    """The text with blanks behind it, `width` columns in all; cut where it takes more."""
    text = cut(text, width)
    return text + " " * (width - display_width(text))


def _columns(char: str) -> int:
    if char.isascii():
        return 1
    import unicodedata  # 1 ms that ASCII need not pay

    if unicodedata.category(char) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1
