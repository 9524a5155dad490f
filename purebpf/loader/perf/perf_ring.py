"""The ring that a perf event writes its records to, mapped and read.

The kernel maps one control page and then the data, once: records may wrap. `data_head` is the
kernel's, `data_tail` ours; both only grow. Data behind the head may be read after the head was, and
data before the tail may be overwritten once the tail is stored. Here both are single aligned 8-byte
accesses, and x86 guarantees their order against the copy of the data (it does not reorder loads
with loads, or stores with earlier loads); other machines need barriers that Python lacks.
"""

from __future__ import annotations

import mmap

from purebpf.abi.perf import PERF_EVENT_MMAP_PAGE
from purebpf.closable import SoleOwner
from purebpf.errors import KernelError
from purebpf.syscall.memory import Memory
from purebpf.wire.perf_ring import unread

__all__ = ["PerfRing"]

_HEAD = PERF_EVENT_MMAP_PAGE.fields["data_head"][0] // 8
_TAIL = PERF_EVENT_MMAP_PAGE.fields["data_tail"][0] // 8


class PerfRing(SoleOwner):
    """The mapped ring of one event: `pages` data pages, a power of two."""

    __slots__ = ("_control", "_data", "_memory")

    def __init__(self, fd: int, pages: int) -> None:
        """Map the ring of the event `fd`.

        Raises:
            KernelError: mmap(2) refused; EPERM: kernel.perf_event_mlock_kb is used up.
            ValueError: `pages` is not a power of two.
        """
        if pages <= 0 or pages & (pages - 1):
            raise ValueError(f"the pages of a perf ring must be a power of two, not {pages}")
        try:
            self._memory = Memory(fd, (1 + pages) * mmap.PAGESIZE, writable=True)
        except KernelError as error:
            from purebpf.loader.perf.perf_errors import mapping_explained

            raise mapping_explained(error, pages) from None
        self._control = self._memory.view[: mmap.PAGESIZE].cast("Q")
        self._data = self._memory.view[mmap.PAGESIZE :].toreadonly()

    def __len__(self) -> int:
        """Bytes that are unread now."""
        return self._control[_HEAD] - self._control[_TAIL]

    @property
    def size(self) -> int:
        """Bytes that the ring holds."""
        return len(self._data)

    @property
    def head(self) -> int:
        """The kernel's write position, for `peek` and `give_back`."""
        return self._control[_HEAD]

    def consume(self) -> bytes:
        """Copy the unread bytes, at most the ring's size, and give their space back to the kernel.

        Raises:
            FormatError: the positions make no sense.
            ValueError: the ring is closed.
        """
        head = self.head
        data = bytes(self.peek(head))
        self.give_back(head)
        return data

    def peek(self, head: int) -> memoryview | bytes:
        """The unread bytes before a `head`, in their place: they stay until `give_back`.

        Those that wrap are copied. Raises as `consume`.
        """
        return unread(self._data, self._control[_TAIL], head)

    def give_back(self, head: int) -> None:
        """Let the kernel write over all before a `head`; no view of it may be used after that."""
        self._control[_TAIL] = head

    def close(self) -> None:
        """Unmap; again is harmless."""
        self._control.release()
        self._data.release()
        self._memory.close()
