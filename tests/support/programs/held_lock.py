"""A lock of the kernel that one thread holds for as long as a test likes, and others wait for.

A thread reads from a pipe into memory that userfaultfd(2) watches: it holds the pipe's mutex until
the page is given. The threads that read from the same pipe then wait for that mutex. With a third
argument it writes the memory to that file, and holds the mutex of the position in it.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import struct
import sys
import threading
import time
from pathlib import Path

__all__ = ["PROGRAM", "has_userfaultfd"]

PROGRAM = Path(__file__)
_SYS_USERFAULTFD = 323
_API, _REGISTER, _COPY = 0xC018AA3F, 0xC020AA00, 0xC028AA03
_MODE_MISSING = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def has_userfaultfd() -> bool:
    """Whether the kernel gives one that serves faults of the kernel, too."""
    fd = _LIBC.syscall(_SYS_USERFAULTFD, os.O_CLOEXEC)
    if fd >= 0:
        os.close(fd)
    return fd >= 0 and os.uname().machine == "x86_64"


def _watched_page() -> tuple[int, int]:
    fd = _LIBC.syscall(_SYS_USERFAULTFD, os.O_CLOEXEC)
    fcntl.ioctl(fd, _API, bytearray(struct.pack("=QQQ", 0xAA, 0, 0)))
    _LIBC.mmap.restype = ctypes.c_void_p
    page = _LIBC.mmap(
        *(None, ctypes.c_size_t(mmap.PAGESIZE), mmap.PROT_READ | mmap.PROT_WRITE),
        *(mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, ctypes.c_long(0)),
    )
    request = struct.pack("=QQQQ", page, mmap.PAGESIZE, _MODE_MISSING, 0)
    fcntl.ioctl(fd, _REGISTER, bytearray(request))
    return fd, page


def _give_page(fd: int, page: int) -> None:
    content = ctypes.create_string_buffer(mmap.PAGESIZE)
    request = struct.pack("=QQQQq", page, ctypes.addressof(content), mmap.PAGESIZE, 0, 0)
    fcntl.ioctl(fd, _COPY, bytearray(request))


def _pass(call: str, fd: int, address: int) -> None:
    assert getattr(_LIBC, call)(fd, ctypes.c_void_p(address), ctypes.c_size_t(1)) == 1


def _begin(call: str, fd: int, address: int) -> threading.Thread:
    """A thread that reads or writes a byte, once it sleeps."""
    thread = threading.Thread(target=_pass, args=(call, fd, address))
    thread.start()
    while thread.native_id is None or not _sleeps(thread.native_id):
        time.sleep(0.001)
    return thread


def _sleeps(tid: int) -> bool:
    """Whether it waits in read(2) or write(2)."""
    call = Path(f"/proc/self/task/{tid}/syscall").read_text(encoding="ascii")
    inside = call.startswith(("0 ", "1 "))
    state = Path(f"/proc/self/task/{tid}/stat").read_text(encoding="ascii").rpartition(") ")[2][0]
    return inside and state in "DS"


def main(waiters: int, hold_s: float, path: str = "") -> None:
    """Hold the lock; print the holder's tid, and from and until when all waited, in ns."""
    uffd, page = _watched_page()
    if path:
        call, fd = "write", os.open(path, os.O_WRONLY | os.O_CREAT)
    else:
        call, (fd, end) = "read", os.pipe()
        os.write(end, b"x" * (waiters + 1))
    print("ready", flush=True)
    sys.stdin.readline()
    began_ns = time.monotonic_ns()
    holder = _begin(call, fd, page)
    buffer = ctypes.create_string_buffer(1)
    threads = [_begin(call, fd, ctypes.addressof(buffer)) for _ in range(waiters)]
    waiting_ns = time.monotonic_ns()
    time.sleep(hold_s)
    given_ns = time.monotonic_ns()
    print(holder.native_id, flush=True)
    if sys.stdin.readline():  # else: the test has ended
        _give_page(uffd, page)
    for thread in (holder, *threads):
        thread.join()
    print(began_ns, waiting_ns, given_ns, time.monotonic_ns(), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), *sys.argv[3:])
