"""Perf maps, /tmp/perf-PID.map: the functions that a just-in-time compiler generated.

One line a function, `START SIZE name`, both numbers in hex (tools/perf/Documentation/
jit-interface.txt). Written by OpenJDK (perfmap), node --perf-basic-prof, CPython -X perf, .NET and
others. The file only grows: code that replaces older code at the same place comes later in it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from itertools import islice

from purebpf.late_pattern import compile_later
from purebpf.symbols.intervals import flatten
from purebpf.symbols.longest_name import ends_at

__all__ = ["PerfMap", "perf_map_name"]

_LINE = compile_later(
    rb"^(?:0x)?([0-9a-fA-F]{1,16}) (?:0x)?([0-9a-fA-F]{1,16}) (.+)$", re.MULTILINE
)
_TOP = (1 << 64) - 1
_MOST_LINES = 1 << 20
_CHECKED = 1 << 12
_TAIL = 1 << 12

Check = Callable[[], object]


class PerfMap:
    """The functions of a perf map's text; the latest line that covers an address names it.

    Lines of another form are skipped, as is a last line that is still being written. At most a
    million lines are read, so that no file takes all memory.

    Appended lines are stored apart and joined with the others when they are half as many: each line
    is sorted a few times in all, however often the file grows.

    Args:
        text: the file's.
        check: called now and then, and may raise.

    Attributes:
        size: bytes of text up to the end of the last whole line.
        tail: the last of them, up to 4 KiB.
    """

    def __init__(self, text: bytes, check: Check | None = None) -> None:
        self.size = 0
        self.tail = b""
        self._parts: list[_Part] = []  # in the order of the file
        self.grow(text, check)

    def __len__(self) -> int:
        """Return the number of lines that name a function."""
        return sum(map(len, self._parts))

    @property
    def nbytes(self) -> int:
        """Memory used, in bytes."""
        return sum(part.nbytes for part in self._parts)

    def grow(self, text: bytes, check: Check | None = None) -> None:
        """Read the part behind the first `size` bytes; nothing is read when `check` raises."""
        text = text[: text.rfind(b"\n") + 1]
        parts = list(self._parts)
        part = _Part(text, _MOST_LINES - len(self), check)
        while parts and len(parts[-1]) < 2 * len(part):
            joined = parts.pop().text + part.text
            part = _Part(joined, _MOST_LINES - sum(map(len, parts)), check)
        self._parts = [*parts, part] if len(part) else parts
        self.size += len(text)
        self.tail = (self.tail + text[-_TAIL:])[-_TAIL:]

    def find(self, address: int) -> tuple[str, int] | None:
        """The function at an address, and the bytes into it."""
        for part in reversed(self._parts):
            if (symbol := part.find(address)) is not None:
                return symbol
        return None


class _Part:
    """Lines that follow each other, sorted."""

    def __init__(self, text: bytes, most: int, check: Check | None) -> None:
        self.text = text
        starts, ends, names = array("Q"), array("Q"), array("Q")
        for line in islice(_LINE.finditer(text), max(most, 0)):
            start = int(line[1], 16)
            starts.append(start)
            ends.append(min(start + int(line[2], 16), _TOP))
            names.append(line.start(3))
            if check is not None and not len(starts) % _CHECKED:
                check()
        ranks = array("I", sorted(range(len(starts)), key=starts.__getitem__))
        self._starts = array("Q", map(starts.__getitem__, ranks))
        self._names = array("Q", map(names.__getitem__, ranks))
        self._segments = flatten(self._starts, array("Q", map(ends.__getitem__, ranks)), ranks)

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def nbytes(self) -> int:
        return len(self.text) + 16 * len(self._starts) + self._segments.nbytes

    def find(self, address: int) -> tuple[str, int] | None:
        owner = self._segments.owner(address)
        if owner < 0:
            return None
        at = self._names[owner]
        name = self.text[at : ends_at(self.text, at, b"\n")]
        return name.decode("utf-8", "backslashreplace").rstrip(), address - self._starts[owner]


def perf_map_name(pid: int, nspid: str = "") -> str:
    """The name of a process's map in its own /tmp, given `NSpid` of its /proc/PID/status.

    A process in a container names the file after the pid it sees itself, the last one.
    """
    seen = nspid.split()
    return f"perf-{seen[-1] if seen else pid}.map"
