"""The bytes that a terminal sends for each key, as xterm and its descendants do. Pure."""

from __future__ import annotations

__all__ = ["decode"]

_ESCAPE = b"\x1b"
_SEQUENCES = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[C": "right",
    b"\x1b[D": "left",
    b"\x1b[H": "home",
    b"\x1b[F": "end",
    b"\x1b[1~": "home",
    b"\x1b[4~": "end",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
}
_CONTROLS = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\b": "backspace",
    "\x0c": "redraw",
    "\x15": "clear",
}


def decode(data: bytes) -> list[str]:
    """Return the keys in the bytes of one read(2): a printable character, or the name of a key.

    Unknown sequences and control characters are dropped. An escape character that begins no
    sequence is the Escape key: terminals write a sequence at once.
    """
    keys: list[str] = []
    while data:
        sequence = _take_sequence(data)
        if sequence:
            data = data[len(sequence) :]
            name = "escape" if sequence == _ESCAPE else _SEQUENCES.get(_normal(sequence), "")
            keys += [name] if name else []
            continue
        plain, escape, rest = data.partition(_ESCAPE)
        data = escape + rest
        for char in plain.decode(errors="ignore"):
            key = _CONTROLS.get(char, char if char.isprintable() else "")
            keys += [key] if key else []
    return keys


def _normal(sequence: bytes) -> bytes:
    """In application mode, ESC O takes the place of ESC [."""
    return b"\x1b[" + sequence[2:]


def _take_sequence(data: bytes) -> bytes:
    """The escape sequence that `data` begins with, b"" for none (ECMA-48, 5.4)."""
    if not data.startswith(_ESCAPE):
        return b""
    if data[1:2] == b"O":
        return data[:3]
    if data[1:2] != b"[":
        return _ESCAPE
    for end in range(2, len(data)):
        if 0x40 <= data[end] <= 0x7E:
            return data[: end + 1]
    return data
