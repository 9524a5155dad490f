"""The output of a compiler, each diagnostic once."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["without_repetition"]

_DIAGNOSTIC = re.compile(r"(\S.*?:\d+):\d+: (?:fatal error|error|warning): (.*)")
_INCLUDED = "In file included from "
_TOTAL = re.compile(r"\d+ (?:error|warning)s?\b.* generated\.")
_STACK_LIMIT = "BPF stack limit"
"""LLVM says it for each instruction beyond the limit: one function, and any of its lines."""


def without_repetition(said: str) -> str:
    """The same words; a diagnostic that came more than once for a line of C has the number."""
    blocks: dict[tuple[str, ...], list[str]] = {}
    for key, block in _blocks(said):
        blocks.setdefault(key, []).append(block)
    return "".join(_counted(same) for same in blocks.values())


def _counted(same: list[str]) -> str:
    """The first of blocks that say the same."""
    first = same[0]
    if len(same) == 1:
        return first
    return _DIAGNOSTIC.sub(rf"\g<0> ({len(same)} times)", first, count=1)


def _blocks(said: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each diagnostic with its notes and lines of C, and the key that it shares with
    another.
    """
    key: tuple[str, ...] = ()
    block: list[str] = []
    for line in said.splitlines(keepends=True):
        match = _DIAGNOSTIC.match(line)
        if (match and key) or (key and line.startswith(_INCLUDED)) or _TOTAL.match(line):
            yield key, "".join(block)
            key, block = (), []
        if match:
            place, words = match.groups()
            key = (words,) if _STACK_LIMIT in words else (place, words)
        elif _TOTAL.match(line):
            key = (line,)
        block.append(line)
    yield key, "".join(block)
