"""Reading another process's memory: missing pages, and limits on trust."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["MOST_READS", "CachedMemory", "Memory", "ReadAt", "UnreadableError"]

ReadAt = Callable[[int, int], bytes]
"""(address, size) -> bytes; fewer, or none, where nothing is mapped."""

_PAGE = 4096
_LARGEST = 1 << 20
MOST_READS = 1 << 20
"""Pieces of pages that a look reads: a second of CPU time."""
_MOST_PAGES = 1 << 14
_WORD = 8


class UnreadableError(Exception):
    """Memory that is not mapped, or that does not hold a runtime's data."""


class Memory:
    """Whole reads, or an error.

    Args:
        read: reads the process.
    """

    def __init__(self, read: ReadAt) -> None:
        self._read = read

    def bytes(self, address: int, size: int) -> bytes:
        """`size` bytes.

        Raises:
            UnreadableError: they are not all there, or more than any real object has.
        """
        if not 0 < address < 1 << 63 or not 0 <= size <= _LARGEST:
            raise UnreadableError
        data = self._read(address, size) if size else b""
        if len(data) < size:
            raise UnreadableError
        return data

    def number(self, address: int, size: int = _WORD) -> int:
        """An unsigned number.

        Raises:
            UnreadableError: as `bytes`.
        """
        return int.from_bytes(self.bytes(address, size), "little")


class CachedMemory(Memory):
    """Reads whole pages, each once: the content is of one moment, more or less.

    Frames of a thread lie side by side, so that most are read with one call.

    Args:
        read: reads the process.
        most_reads: pieces of pages that it gives, a second or so; nothing can be read after them.
            A process may hold lists of any length, and lists that share their ends.
    """

    def __init__(self, read: ReadAt, most_reads: int = MOST_READS) -> None:
        super().__init__(self._read_cached)
        self._read_page = read
        self._pages: dict[int, bytes] = {}
        self._reads_left = most_reads

    @property
    def kept_bytes(self) -> int:
        """The bytes of its pages."""
        return sum(map(len, self._pages.values()))

    def _read_cached(self, address: int, size: int) -> bytes:
        whole = b""
        while size:
            self._reads_left -= 1
            if self._reads_left < 0:
                raise UnreadableError
            if len(self._pages) >= _MOST_PAGES:
                self._pages.clear()
            page, inside = address & -_PAGE, address & _PAGE - 1
            data = self._pages.get(page)
            if data is None:
                data = self._pages[page] = self._read_page(page, _PAGE)
            piece = data[inside : inside + size]
            whole += piece
            address += len(piece)
            size -= len(piece)
            if not piece:
                break
        return whole
