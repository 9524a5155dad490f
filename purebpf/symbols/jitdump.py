"""jitdump files, jit-PID.dump: the code of a just-in-time compiler, as perf inject reads it.

A header and records that are only ever appended (tools/perf/Documentation/
jitdump-specification.txt), in the byte order of the machine that wrote them. node --perf-prof,
CPython -X perf_jit, perf's agent for the JVM and others write them. purebpf reads the function of
each address; it skips the code, its unwinding tables and the line tables: V8 moves their addresses
to where perf inject puts the code, and node 20 fills in freed memory for the names of files.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable

from purebpf.late_pattern import compile_later
from purebpf.symbols.intervals import Segments, flatten
from purebpf.symbols.longest_name import LONGEST_NAME
from purebpf.tuples import NamedTuple
from purebpf.wire import formats

__all__ = ["JitDump", "is_jitdump_name"]

Read = Callable[[int, int], bytes]
"""(offset, size) -> so many bytes of the file, or fewer at its end."""

_LOAD, _MOVE = 0, 1  # the others: debug info, close, unwinding info
_ORDERS = {b"DTiJ": "<", b"JiTD": ">"}
_VERSION = 1
_HEADER_SIZE = struct.calcsize("=" + formats.JITDUMP_HEADER)
_PREFIX_SIZE = struct.calcsize("=" + formats.JITDUMP_PREFIX)
_LOAD_SIZE = struct.calcsize("=" + formats.JITDUMP_LOAD)
_MOVE_SIZE = struct.calcsize("=" + formats.JITDUMP_MOVE)
_MOST_RECORDS = 1 << 20
_MOST_TEXT = 1 << 26
_ROW = 200  # bytes of memory: columns, index, and the entry by code_index
_CHUNK = 1 << 18
_TOP = (1 << 64) - 1
_NAME = compile_later(r"jit-\d+\.dump")


class JitDump:
    """The functions of a jitdump; the one that was generated last at an address names it.

    Records have times, of CLOCK_MONOTONIC or of the processor's counter. Only their order counts
    here, and that is the same on either clock. So that no file takes all memory, a million
    records are read, and names of 64 MiB.

    Attributes:
        problem: the fault of the file that stopped the reading; "" if there is none.
    """

    def __init__(self) -> None:
        self.problem = ""
        self._at = 0
        self._order = ""
        self._records = 0
        self._starts, self._ends = array("Q"), array("Q")
        self._times, self._names = array("Q"), array("Q")
        self._text = bytearray()  # names, each with a zero behind it
        self._rows: dict[int, int] = {}  # by code_index
        self._index: _Index | None = None

    def __len__(self) -> int:
        """Return the number of named ranges."""
        return len(self._starts)

    @property
    def nbytes(self) -> int:
        """Memory used, in bytes."""
        return len(self._text) + _ROW * len(self._starts)

    def grow(self, read: Read, size: int) -> None:
        """Take in the records that were added since the last time.

        One that is still being written waits for the next time.

        Args:
            read: reads the file. It may raise: the records read until then count.
            size: how long it is now.
        """
        if self.problem:
            return
        window = _Window(read, size)
        if not self._order and not self._begin(window):
            return
        prefix = struct.Struct(self._order + formats.JITDUMP_PREFIX)
        while self._at + _PREFIX_SIZE <= size:
            head = window.get(self._at, _PREFIX_SIZE)
            if len(head) < _PREFIX_SIZE:
                return
            kind, total, time = prefix.unpack(head)
            if total < _PREFIX_SIZE:
                self.problem = f"offset {self._at}: a record of {total} bytes"
                return
            if self._at + total > size:
                return
            if self._records >= _MOST_RECORDS or len(self._text) >= _MOST_TEXT:
                self.problem = f"offset {self._at}: more than purebpf keeps"
                return
            self._record(window, kind, total, time)
            self._at += total

    def find(self, address: int) -> tuple[str, int] | None:
        """The function at an address, and the bytes into it."""
        if self._index is None:
            self._index = self._build()
        owner = self._index.segments.owner(address)
        if owner < 0:
            return None
        row = self._index.rows[owner]
        at = self._names[row]
        name = self._text[at : self._text.index(b"\0", at)]
        return name.decode("utf-8", "backslashreplace"), address - self._starts[row]

    def _begin(self, window: _Window) -> bool:
        """Read the header; whether it is there."""
        head = window.get(0, _HEADER_SIZE)
        if len(head) < _HEADER_SIZE:
            return False
        order = _ORDERS.get(head[:4], "")
        if not order:
            self.problem = "offset 0: not a jitdump file"
            return False
        _, version, size, *_ = struct.unpack(order + formats.JITDUMP_HEADER, head)
        if version != _VERSION or size < _HEADER_SIZE:
            self.problem = f"offset 4: version {version}, a header of {size} bytes"
            return False
        self._order, self._at = order, size
        return True

    def _record(self, window: _Window, kind: int, total: int, time: int) -> None:
        self._records += 1
        at, room = self._at + _PREFIX_SIZE, total - _PREFIX_SIZE
        if kind == _LOAD and room >= _LOAD_SIZE:
            self._load(window.get(at, _LOAD_SIZE), window, at + _LOAD_SIZE, room - _LOAD_SIZE, time)
        elif kind == _MOVE and room >= _MOVE_SIZE:
            self._move(window.get(at, _MOVE_SIZE), time)

    def _load(self, body: bytes, window: _Window, at: int, room: int, time: int) -> None:
        """A function; its name ends with a zero, and its code comes behind it."""
        if len(body) < _LOAD_SIZE:
            return
        *_, start, size, index = struct.unpack(self._order + formats.JITDUMP_LOAD, body)
        room = room - size if size < room else room
        name, _, _ = window.get(at, min(room, LONGEST_NAME + 1)).partition(b"\0")
        if name:
            self._rows[index] = len(self._starts)
            self._text += name + b"\0"
            self._add(start, size, time, len(self._text) - len(name) - 1)

    def _move(self, body: bytes, time: int) -> None:
        if len(body) < _MOVE_SIZE:
            return
        *_, start, size, index = struct.unpack(self._order + formats.JITDUMP_MOVE, body)
        row = self._rows.get(index)
        if row is not None:
            self._add(start, size, time, self._names[row])

    def _add(self, start: int, size: int, time: int, name: int) -> None:
        self._starts.append(start)
        self._ends.append(min(start + size, _TOP))
        self._times.append(time)
        self._names.append(name)
        self._index = None

    def _build(self) -> _Index:
        by_time = sorted(range(len(self._times)), key=self._times.__getitem__)
        ranks = array("I", bytes(4 * len(by_time)))
        for rank, row in enumerate(by_time):
            ranks[row] = rank
        rows = array("I", sorted(range(len(self._starts)), key=self._starts.__getitem__))
        segments = flatten(
            [self._starts[row] for row in rows],
            [self._ends[row] for row in rows],
            [ranks[row] for row in rows],
        )
        return _Index(rows, segments)


class _Index(NamedTuple):
    """Rows by address, and the segments, with positions in `rows` as owners."""

    rows: array[int]
    segments: Segments


class _Window:
    """A file in pieces, so that small records do not cost a call each."""

    def __init__(self, read: Read, size: int) -> None:
        self._read = read
        self._size = size
        self._start = 0
        self._data = b""

    def get(self, at: int, size: int) -> bytes:
        size = min(size, self._size - at)
        skip = at - self._start
        if skip < 0 or skip + size > len(self._data):
            self._start, skip = at, 0
            self._data = self._read(at, min(max(size, _CHUNK), self._size - at))
        return self._data[skip : skip + size]


def is_jitdump_name(path: str) -> bool:
    """Return True if a mapped file's name is a jitdump's. Its number is the PID that the writer
    sees.
    """
    return _NAME.fullmatch(path.rpartition("/")[2]) is not None
