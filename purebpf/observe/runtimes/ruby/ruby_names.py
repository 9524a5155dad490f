"""The names of Ruby methods and blocks that BPF sends, as records of `python_names`."""

from __future__ import annotations

from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.runtimes.ruby.frames import BUILT_IN, UNKNOWN_METHOD
from purebpf.runtimes.ruby.layout import RubyLayout
from purebpf.runtimes.ruby.objects import RubySymbols

__all__ = ["describe_ruby"]

_ROOM = 256
"""Bytes of a name, and of a path, that a record has room for."""
_MOST_TEXT = 4096


def describe_ruby(
    layout: RubyLayout,
    memory: Memory,
    symbols: int,
    texts: tuple[bytes, int, int],
    strings: tuple[int, int],
) -> tuple[str, str]:
    """Return the name and the file of code; or of a method written in C, if there is no file.

    Args:
        layout: of its interpreter.
        memory: the process's, for what had no room in the record.
        symbols: the address of the names of methods; 0: not known.
        texts: of the record, with the whole lengths of the name and the file.
        strings: the addresses of these texts; of a method written in C, the number of its
            name, and 0.
    """
    raw, *lengths = texts
    if not strings[1]:
        try:
            name = RubySymbols(layout, memory, symbols).name(strings[0], _MOST_TEXT)
        except UnreadableError:
            return "", ""
        return name or UNKNOWN_METHOD, BUILT_IN
    at, found = 0, []
    for address, length in zip(strings, lengths, strict=True):
        size = min(length, _ROOM)
        found.append(_text(memory, address, raw[at : at + size], length))
        at += size
    return found[0], found[1]


def _text(memory: Memory, at: int, sent: bytes, length: int) -> str:
    """A text; one that was not sent whole is read, if it still begins like that."""
    raw = sent
    if length > len(sent):
        try:
            whole = memory.bytes(at, min(length, _MOST_TEXT))
        except UnreadableError:
            whole = b""
        raw = whole if whole.startswith(sent) else sent + b"..."
    return raw.decode("utf-8", "replace")
