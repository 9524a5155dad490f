"""Owned mappings of maps, rings and files: mmap(2)."""

from __future__ import annotations

import ctypes
import mmap
import weakref
from typing import Any

from purebpf.closable import Closing, SoleOwner
from purebpf.errors import KernelError

__all__ = ["Memory", "lasting", "lasting_view"]

_MAP_FIXED_NOREPLACE = 0x100000
_FAILED = ctypes.c_void_p(-1).value


class Memory(Closing):
    """`size` bytes of a file descriptor's memory, shared with the kernel.

    Attributes:
        view: the bytes as a memoryview; writing to a read-only one is a `TypeError`.
        size: the length in bytes.

    Every slice of `view` must be released before `close()`.
    """

    __slots__ = ("_map", "size", "view")

    def __init__(
        self, fd: int, size: int, *, offset: int = 0, writable: bool = False, address: int = 0
    ) -> None:
        """Map `size` bytes from `offset`, a multiple of the page size, MAP_SHARED.

        They are put at `address` if it is free (Linux 4.17, commit a4ff8e8620d3, "mm: introduce
        MAP_FIXED_NOREPLACE"). The descriptor may be closed afterwards: the mapping has its own
        reference.

        Raises:
            KernelError: mmap(2) refused: EEXIST, something else is at `address`.
        """
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        self.size = size
        if address:
            self._map: mmap.mmap | _Fixed = _Fixed(fd, size, offset, protection, address)
            self.view = self._map.view
            return
        try:
            self._map = mmap.mmap(fd, size, mmap.MAP_SHARED, protection, offset=offset)
        except OSError as error:
            raise KernelError("mmap", error.errno or 0, f"{size} bytes at {offset}") from None
        self.view = memoryview(self._map)

    def close(self) -> None:
        """Unmap; again is harmless.

        Raises:
            BufferError: a slice of `view` is still in use.
        """
        self.view.release()
        self._map.close()


def lasting(fd: int, size: int) -> Any:
    """`size` bytes of a descriptor's memory as an array that is unmapped after its last use.

    It needs no descriptor after that, and may be written to.

    Raises:
        KernelError: mmap(2) refused.
    """
    return _lasting(fd, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED)


def lasting_view(fd: int, size: int) -> memoryview:
    """`size` bytes of a file, MAP_PRIVATE and read-only, unmapped after the view's last use.

    It needs no descriptor after that, where the views of mmap.mmap keep one of their own.

    Raises:
        KernelError: mmap(2) refused.
    """
    return memoryview(_lasting(fd, size, mmap.PROT_READ, mmap.MAP_PRIVATE)).cast("B").toreadonly()


def _lasting(fd: int, size: int, protection: int, flags: int) -> Any:
    address = _mmap(fd, size, protection, flags=flags)
    memory = (ctypes.c_ubyte * size).from_address(address)
    weakref.finalize(memory, _unmap, address, size).atexit = False
    return memory


def _mmap(
    fd: int, size: int, protection: int, *, flags: int, offset: int = 0, address: int = 0
) -> int:
    place = ctypes.CDLL(None, use_errno=True).mmap
    place.restype = ctypes.c_void_p
    place.argtypes = [
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
        ctypes.c_long,
    ]
    mapped_at: int = place(address, size, protection, flags, fd, offset)
    if mapped_at == _FAILED:
        where = f" at address {address:#x}" if address else ""
        raise KernelError("mmap", ctypes.get_errno(), f"{size} bytes{where}")
    return mapped_at


def _unmap(address: int, size: int) -> None:
    unmap = ctypes.CDLL(None).munmap
    unmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    unmap(address, size)


class _Fixed(SoleOwner):
    """A mapping at an address, which Python's mmap does not offer."""

    def __init__(self, fd: int, size: int, offset: int, protection: int, address: int) -> None:
        flags = mmap.MAP_SHARED | _MAP_FIXED_NOREPLACE
        _mmap(fd, size, protection, flags=flags, offset=offset, address=address)
        self._address, self._size = address, size
        view = memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")
        self.view = view if protection & mmap.PROT_WRITE else view.toreadonly()

    def close(self) -> None:
        """Unmap; again is harmless."""
        if self._address:
            _unmap(self._address, self._size)
            self._address = 0
