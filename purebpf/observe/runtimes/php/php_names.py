"""The names of PHP functions that BPF sends, as records of `python_names`."""

from __future__ import annotations

from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.runtimes.php.frames import BUILT_IN, EVAL, MAIN
from purebpf.runtimes.php.layout import PhpLayout
from purebpf.tuples import NamedTuple

__all__ = ["PhpTexts", "describe_php"]

_ROOM = 256
"""Bytes of a name, and of a path, that a record has room for."""
_CLASS_ROOM = 1024
_EVALUATED = "eval()'d code"
"""The end of the file's name of a text that was evaluated."""
_MOST_TEXT = 4096


class PhpTexts(NamedTuple):
    """The texts of a record, and their whole lengths: of a function, its file, and its class."""

    raw: bytes
    name: int
    path: int
    of: int


def describe_php(
    layout: PhpLayout, memory: Memory, texts: PhpTexts, strings: tuple[int, int, int]
) -> tuple[str, str]:
    """Return the name and the file of a function; "" for both of one that has neither.

    Args:
        layout: of its engine.
        memory: the process's, for what had no room in the record.
        texts: of the record.
        strings: their addresses; 0 for one that a function does not have.
    """
    at, found = 0, []
    rooms = (_ROOM, _ROOM, _CLASS_ROOM if texts.of <= _CLASS_ROOM else 0)
    for address, length, room in zip(strings, texts[1:], rooms, strict=True):
        size = min(length, room)
        found.append(_text(layout, memory, address, texts.raw[at : at + size], length))
        at += size
    name, file, of = found
    if not strings[0]:
        if not strings[1]:
            return "", ""
        return (EVAL if file.endswith(_EVALUATED) else MAIN), file
    return (f"{of}::{name}" if strings[2] else name), file if strings[1] else BUILT_IN


def _text(layout: PhpLayout, memory: Memory, address: int, sent: bytes, length: int) -> str:
    """A string; one that was not sent whole is read, if it still begins like that."""
    raw = sent
    if address and length > len(sent):
        try:
            whole = memory.bytes(address + layout.string_text, min(length, _MOST_TEXT))
        except UnreadableError:
            whole = b""
        raw = whole if whole.startswith(sent) else sent + b"..."
    return raw.partition(b"\0")[0].decode("utf-8", "replace")
