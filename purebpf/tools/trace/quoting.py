"""Bytes as a string of C, as strace writes them. Pure."""

from __future__ import annotations

import re

__all__ = ["hexadecimal", "quote", "quote_path"]

_NAMED = {
    0x09: "\\t", 0x0A: "\\n", 0x0B: "\\v", 0x0C: "\\f", 0x0D: "\\r", 0x22: '\\"', 0x5C: "\\\\",
}  # fmt: skip
_PLAIN = re.compile(rb"[ !#-\[\]-~]*")


def quote(data: bytes, *, more: bool = False) -> str:
    r"""Return `"text\n"`; `more`: dots behind it, for omitted bytes."""
    return f'"{_escape(data)}"{"..." if more else ""}'


def quote_path(path: str) -> str:
    r"""Return `/tmp/a\nb`: the path of a descriptor, to stand between `<` and `>`.

    Args:
        path: bytes that are not UTF-8 are surrogates, as os.fsdecode() has them.
    """
    return _escape(path.encode("utf-8", "surrogateescape"), b"<>")


def _escape(data: bytes, special: bytes = b"") -> str:
    if _PLAIN.fullmatch(data) and not any(byte in special for byte in data):
        return data.decode("ascii")
    text = []
    for index, byte in enumerate(data):
        if byte in _NAMED:
            text.append(_NAMED[byte])
        elif 0x20 <= byte < 0x7F and byte not in special:
            text.append(chr(byte))
        else:
            # shorter than three digits where no digit follows that would belong to it
            follows = data[index + 1 : index + 2]
            is_digit = bool(follows) and follows in b"01234567"
            text.append(f"\\{byte:03o}" if is_digit else f"\\{byte:o}")
    return "".join(text)


def hexadecimal(data: bytes, *, more: bool = False) -> str:
    r"""`"\x0a\xff"`: for bytes that are not text."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"' + ("..." if more else "")
