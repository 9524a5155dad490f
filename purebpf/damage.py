"""Words for the exceptions that Python raises when the bytes of a damaged file are read."""

from __future__ import annotations

import struct

__all__ = ["describe"]


def describe(error: Exception) -> str:
    """Return what is wrong with a file, in words, for an exception that reading it raised.

    A ValueError of purebpf has a sentence already. Exceptions of Python and of its library speak of
    lists, conversions and classes, which the reader of a message does not see.
    """
    if isinstance(error, KeyError):
        key = error.args[0] if error.args else ""
        if isinstance(key, str):
            return f"{key[:_LONGEST]!r} is missing"
        return f"it refers to {ascii(key)[:_LONGEST]}, which it does not have"
    if isinstance(error, LookupError):
        return "it refers to an entry that it does not have; it may be cut off"
    if isinstance(error, struct.error):
        return "a record is cut off, or a number does not fit"
    if isinstance(error, UnicodeError):
        return "a text is not UTF-8"
    if isinstance(error, OverflowError):
        return "a number is too large"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, TypeError | AttributeError):
        return "a value has another type than the format's"
    text = str(error)
    if text.startswith(_NUMBERS):
        return f"not a number: {text.rpartition(': ')[2]}"
    if text.startswith("zip() "):
        return "two lists that belong together differ in length"
    return text or "a value is not one of the format's"


_LONGEST = 60
"""Letters of a name in a message."""
_NUMBERS = ("invalid literal for ", "could not convert string to float: ")
"""int() and float() raise ValueErrors that begin so."""
