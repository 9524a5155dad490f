"""Bytes as a string of C, as strace writes them. Pure."""

from __future__ import annotations

import re

__all__ = ["hexadecimal", "quote"]

_NAMED = {
    0x09: "\\t", 0x0A: "\\n", 0x0B: "\\v", 0x0C: "\\f", 0x0D: "\\r", 0x22: '\\"', 0x5C: "\\\\",
}  # fmt: skip
_PLAIN = re.compile(rb"[ !#-\[\]-~]*")


def quote(data: bytes, *, more: bool = False) -> str:
    r"""`"text\n"`; `more`: dots behind it, for bytes that are left out."""
    dots = "..." if more else ""
    if _PLAIN.fullmatch(data):
        return f'"{data.decode("ascii")}"{dots}'
    text = []
    for place, byte in enumerate(data):
        if byte in _NAMED:
            text.append(_NAMED[byte])
        elif 0x20 <= byte < 0x7F:
            text.append(chr(byte))
        else:
            # shorter than three digits where no digit follows that would belong to it
            follows = data[place + 1 : place + 2]
            is_digit = bool(follows) and follows in b"01234567"
            text.append(f"\\{byte:03o}" if is_digit else f"\\{byte:o}")
    return f'"{"".join(text)}"{dots}'


def hexadecimal(data: bytes, *, more: bool = False) -> str:
    r"""`"\x0a\xff"`: for bytes that are not text."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"' + ("..." if more else "")
