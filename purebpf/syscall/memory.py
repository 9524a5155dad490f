"""Owned mappings of maps, rings and files: mmap(2)."""

from __future__ import annotations

import mmap
from types import TracebackType
from typing import Self

from purebpf.errors import KernelError

__all__ = ["Memory"]


class Memory:
    """`size` bytes of a file descriptor's memory, shared with the kernel.

    Attributes:
        view: the bytes as a memoryview; writing to a read-only one is a `TypeError`.
        size: the length in bytes.

    Every slice of `view` must be released before `close()`.
    """

    __slots__ = ("_map", "size", "view")

    def __init__(self, fd: int, size: int, *, offset: int = 0, writable: bool = False) -> None:
        """Map `size` bytes from `offset`, a multiple of the page size, MAP_SHARED.

        The descriptor may be closed afterwards: the mapping has its own.

        Raises:
            KernelError: mmap(2) refused.
        """
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        try:
            self._map = mmap.mmap(fd, size, mmap.MAP_SHARED, protection, offset=offset)
        except OSError as error:
            raise KernelError("mmap", error.errno or 0, f"{size} bytes at {offset}") from None
        self.size = size
        self.view = memoryview(self._map)

    def close(self) -> None:
        """Unmap; again is harmless.

        Raises:
            BufferError: a slice of `view` is still in use.
        """
        self.view.release()
        self._map.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
