"""Opened files, counted by path or by process. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from purebpf.tools.open.events import Opened
from purebpf.tuples import NamedTuple

__all__ = ["ROOM", "OpenRow", "Summary"]

ROOM = 1 << 17
"""Rows that there is room for: some 100 MB."""
_TEXT = 64 << 20
"""Bytes of their names: a process may ask for paths of 4,096 bytes that do not exist."""
_APART = 1 << 20
"""Paths and processes that are counted apart, of all rows: 100 MB."""


class OpenRow:
    """The calls of one path or process.

    `errors` counts those that failed, by errno; `others` has the processes of a path, or hashes of
    the paths of a process, as many as were counted apart.
    """

    __slots__ = ("calls", "errors", "max_ns", "name", "others", "total_ns")

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.total_ns = 0
        self.max_ns = 0
        self.errors: Counter[int] = Counter()
        self.others: set[int] = set()

    @property
    def failed(self) -> int:
        """The number of calls that failed."""
        return self.errors.total()


class _Key(NamedTuple):
    path: str
    pid: int


class Summary:
    """Rows by path, or by process.

    Attributes:
        dropped: calls that found no room.
        lumped: calls of a path or process that found no room to be counted apart.
    """

    def __init__(self, by: str, room: int = ROOM) -> None:
        self.by = by
        self.dropped = self.lumped = 0
        self._room = room
        self._text_left, self._apart_left = _TEXT, _APART
        self._rows: dict[_Key, OpenRow] = {}

    def add(self, events: Iterable[Opened]) -> None:
        """Count calls."""
        by_path = self.by == "path"
        for event in events:
            key = _Key(event.path, 0) if by_path else _Key("", event.pid)
            row = self._rows.get(key)
            if row is None:
                name = event.path if by_path else event.comm
                if len(self._rows) >= self._room or len(name) > self._text_left:
                    self.dropped += 1
                    continue
                self._text_left -= len(name)
                row = self._rows[key] = OpenRow(name)
            row.calls += 1
            duration_ns = event.duration_ns or 0  # where it is not known, too
            row.total_ns += duration_ns
            row.max_ns = max(row.max_ns, duration_ns)
            if event.errno:
                row.errors[event.errno] += 1
            self._count_apart(row, event.pid if by_path else hash(event.path))

    def _count_apart(self, row: OpenRow, other: int) -> None:
        if other in row.others:
            return
        if not self._apart_left:
            self.lumped += 1
            return
        self._apart_left -= 1
        row.others.add(other)

    def rows(self) -> list[tuple[int, OpenRow]]:
        """Process ID (0 by path) and row: most failures first, then most calls."""
        rows = [(key.pid, row) for key, row in self._rows.items()]
        return sorted(rows, key=lambda item: (-item[1].failed, -item[1].calls, item[1].name))
