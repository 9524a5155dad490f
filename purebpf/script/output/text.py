"""Values as text: `print()`, and the conversions of `printf()`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purebpf.abi.gfp_flags import describe_gfp_flags
from purebpf.script.format_string import Conversion

__all__ = ["format_values", "show", "show_key"]


def show(value: Any) -> str:
    """Return a value as print() shows it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"({', '.join(map(show, value))})"
    if isinstance(value, list):
        return f"[{','.join(map(show, value))}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f".{name} = {show(item)}" for name, item in value.items()) + " }"
    if isinstance(value, bytes):
        return "".join(chr(byte) if 32 <= byte <= 126 else f"\\x{byte:02x}" for byte in value)
    return str(value)


def show_key(key: Any) -> str:
    """Return a key as it is shown between brackets."""
    return ", ".join(map(show, key)) if isinstance(key, tuple) else show(key)


def format_values(conversions: Sequence[Conversion], rest: str, values: Sequence[Any]) -> str:
    """Return the text of a printf()."""
    pieces: list[str] = []
    for conversion, value in zip(conversions, values, strict=True):
        pieces += (conversion.before, _convert(conversion, value))
    return "".join((*pieces, rest))


def _convert(conversion: Conversion, value: Any) -> str:
    flags, kind = conversion.flags, conversion.kind
    if kind in ("s", "r", "rh", "rx"):
        text = show(value)
        if kind == "rx" and isinstance(value, bytes):
            text = "".join(f"\\x{byte:02x}" for byte in value)
        elif kind == "rh" and isinstance(value, bytes):
            text = value.hex(" ")
        if conversion.precision >= 0:
            text = text[: conversion.precision]
        return _pad(text, conversion, "")
    if kind == "gr" and isinstance(value, int):
        return _pad(describe_gfp_flags(int(value) & 0xFFFFFFFF), conversion, "")
    if isinstance(value, str):
        return _pad(value, conversion, "")
    if kind == "c":
        return _pad(chr(int(value) & 0xFF), conversion, "")
    if kind == "p":
        return _pad(f"{int(value) & (1 << 64) - 1:#x}", conversion, "")
    number = int(value) & ((1 << conversion.bits) - 1)
    if kind in "di" and number >> (conversion.bits - 1):
        number -= 1 << conversion.bits
    prefix = "-" if number < 0 else "+" if "+" in flags and kind in "di" else ""
    if not prefix and " " in flags and kind in "di":
        prefix = " "
    digits = format(abs(number), {"x": "x", "X": "X", "o": "o"}.get(kind, "d"))
    if conversion.precision >= 0:
        digits = digits.rjust(conversion.precision, "0")
    if "#" in flags and number and kind in "xXo":
        prefix += {"x": "0x", "X": "0X", "o": "0"}[kind]
    return _pad(digits, conversion, prefix)


def _pad(text: str, conversion: Conversion, prefix: str) -> str:
    room = conversion.width - len(prefix)
    if "-" in conversion.flags:
        return prefix + text.ljust(room)
    if "0" in conversion.flags and conversion.kind in "diouxX" and conversion.precision < 0:
        return prefix + text.rjust(room, "0")
    return (prefix + text).rjust(conversion.width)
