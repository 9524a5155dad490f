"""The pages of an arena, by the pointers that programs keep in them."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from purebpf.syscall.memory import Memory

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf

__all__ = ["Arena"]

_SHORT = 0xFFFF_FFFF
"""Of a pointer that a program did not cast for user space, the kernel keeps the lower half."""


class Arena(Memory):
    """An arena's memory, which programs and this process see at one address (Linux 6.9).

    Attributes:
        address: of its first byte, as pointers of C have it.
    """

    __slots__ = ("_btf", "address")

    def __init__(self, fd: int, size: int, *, address: int, btf: Btf | None) -> None:
        """Map `size` bytes, writable, at `address` or, if that is 0, where there is room.

        Raises:
            KernelError: as `Memory`.
        """
        super().__init__(fd, size, writable=True, address=address)
        self.address = ctypes.addressof(ctypes.c_ubyte.from_buffer(self.view))
        self._btf = btf

    def offset(self, pointer: int) -> int:
        """Return the place in `view` of a program's pointer, given whole or by its lower half.

        Raises:
            ValueError: it is NULL, or leads out of the arena.
        """
        full = pointer > _SHORT
        offset = pointer - self.address if full else (pointer - self.address) & _SHORT
        if not pointer or not 0 <= offset < self.size:
            description = "NULL" if not pointer else f"{pointer:#x}"
            last = self.address + self.size - 1
            raise ValueError(
                f"pointer {description} is not in the arena ({self.address:#x} to {last:#x})"
            )
        return offset

    def at(self, pointer: int, type: str) -> Any:  # noqa: A002 - as in `Map.read(type=...)`
        """The value that a pointer leads to: `arena.at(node.next, "struct node")`.

        Raises:
            KeyError: the object has no such type; lists those with a similar name.
            ValueError: the pointer is NULL, or leads out of the arena, as the value's end may.
        """
        from purebpf.btf.codec.named_types import NamedTypes

        codec = NamedTypes(self._btf)[type]
        start = self.offset(pointer)
        if start + codec.size > self.size:
            raise ValueError(
                f"{type} at {pointer:#x} ends {codec.size} bytes on, outside the arena"
            )
        return codec.decode(bytes(self.view[start : start + codec.size]))
