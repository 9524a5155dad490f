"""A process that maps a file of a FUSE which never answers a read.

Run as `python -m tests.support.host.silent_fuse stack|python|file|lock`, by root, who mounts
what fusermount(1) mounts for a user, and becomes the user 65534. `stack`: the stack pointer of its
thread, and its arguments, are there; `python`: the variable _PyRuntime, while a thread works;
`file`: what would be code, in a file system that root may look into (allow_other). It does not say,
either, what any other name is. `lock`: a thread holds the lock of all mappings while it waits for a
page, as its first read failed (FAULT_FLAG_TRIED), another works, and a third waits to map more,
behind which all wait who want to look.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["silent"]

USER = 65534
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_LIBC.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
_LIBC.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_PRIVATE, _FIXED, _READ_WRITE, _RANDOM = 2, 0x10, 3, 1
_SIZE = 1 << 20
_PAUSE = b"\xb8\x22\0\0\0\x0f\x05\xeb\xf7"  # mov eax, 34; syscall; jmp to the mov
_SPIN = b"\xeb\xfe"


@contextmanager
def silent(mode: str) -> Iterator[int]:
    """The PID of such a process; it ends with the block, whatever waits for its file system."""
    with subprocess.Popen(
        [sys.executable, "-m", __name__, mode], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        words = process.stdout.readline().split()
        try:
            assert words, "there is no FUSE"
            until = time.monotonic() + 30
            while not _is_silent(process.pid, mode) and time.monotonic() < until:
                time.sleep(0.01)
            yield process.pid
        finally:
            for pid in map(int, words):  # the file system last: nothing waits for it then
                os.kill(pid, 9)


def _is_silent(pid: int, mode: str) -> bool:
    """Whether it has come to its end: its first thread waits in pause(2), or maps the file."""
    if mode == "stack":
        with open(f"/proc/{pid}/syscall") as file:
            return file.read().startswith("34 ")
    if mode == "lock":
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].startswith(" D ")
    with open(f"/proc/{pid}/maps") as file:
        return any(line.endswith("/f\n") for line in file)


def _answer(fd: int, mode: str) -> None:
    """The file system, of one file, `f`: all is answered (linux/fuse.h) but reads, other names."""

    def attributes(inode: int, mode: int, size: int) -> bytes:
        times = (0,) * 6
        return struct.pack("=6Q10I", inode, size, 1, 0, 0, 0, *times[:3], mode, 1, 0, 0, 0, 4096, 0)

    file = attributes(2, 0o100666, 1 << 24)
    root = attributes(1, 0o40777, 0)
    bodies = {
        1: struct.pack("=QQQQII", 2, 0, 100, 100, 0, 0) + file,  # LOOKUP
        14: struct.pack("=QII", 7, 0, 0),  # OPEN
        26: struct.pack("=IIIIHHII", 7, 31, 1 << 16, 0, 12, 10, 1 << 17, 1).ljust(
            64, b"\0"
        ),  # INIT
    }
    failing = 1 if mode == "lock" else 0
    while True:
        request = os.read(fd, 1 << 20)
        _, call, unique, inode = struct.unpack_from("=IIQQ", request)
        if call == 15 and failing:
            failing -= 1
            os.write(fd, struct.pack("=IiQ", 16, -5, unique))  # EIO
            continue
        if call in (2, 15, 36) or (call == 1 and request[40:] != b"f\0"):
            continue  # FORGET, READ, INTERRUPT, LOOKUP
        body = bodies.get(call)
        if call == 3:  # GETATTR
            body = struct.pack("=QII", 100, 0, 0) + (root if inode == 1 else file)
        if body is None:
            os.write(fd, struct.pack("=IiQ", 16, -38, unique))  # ENOSYS
        else:
            os.write(fd, struct.pack("=IiQ", 16 + len(body), 0, unique) + body)


def _mount(more: str = "") -> tuple[int, str]:
    """As fusermount(1) does, and become the user."""
    assert _LIBC.unshare(0x20000) == 0  # CLONE_NEWNS
    assert _LIBC.mount(None, b"/", None, 0x44000, None) == 0  # MS_REC | MS_PRIVATE
    where = tempfile.mkdtemp()
    os.chown(where, USER, USER)
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fd},rootmode=40000,user_id={USER},group_id={USER}{more}"
    if _LIBC.mount(b"silent", where.encode(), b"fuse", 6, options.encode()):
        raise OSError(ctypes.get_errno(), "mount(fuse)")
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)
    _LIBC.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: it has been root's until now
    return fd, where


def main(mode: str) -> None:
    fd, where = _mount(",allow_other" if mode == "file" else "")
    server = os.fork()
    if not server:
        os.close(1)
        _answer(fd, mode)
    os.close(fd)
    file = os.open(f"{where}/f", os.O_RDWR)
    code = mmap.mmap(-1, 4096, prot=7)
    run = ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    if mode == "file":
        print(os.getpid(), server, flush=True)
        _LIBC.mmap(None, _SIZE, 5, _PRIVATE, file, 0)  # PROT_READ | PROT_EXEC
        signal.pause()
    elif mode == "lock":
        code.write(_SPIN)
        slow = _LIBC.mmap(None, _SIZE, 1, _PRIVATE, file, 0)
        _LIBC.madvise(slow, _SIZE, _RANDOM)
        threading.Thread(target=run, daemon=True).start()
        threading.Thread(target=_LIBC.memcmp, args=(slow, slow, 1), daemon=True).start()
        time.sleep(0.2)
        print(os.getpid(), server, flush=True)
        _LIBC.mmap(None, _SIZE, _READ_WRITE, 0x22, -1, 0)  # MAP_PRIVATE | MAP_ANONYMOUS
    elif mode == "stack":
        slow = _LIBC.mmap(None, _SIZE, _READ_WRITE, _PRIVATE, file, 0)
        _LIBC.madvise(slow, _SIZE, _RANDOM)
        code.write(b"\x48\xbc" + struct.pack("<Q", slow + _SIZE // 2) + _PAUSE)  # mov rsp, ...
        with open("/proc/self/stat") as stat:
            arguments = int(stat.read().rpartition(")")[2].split()[45]) & -4096
        print(os.getpid(), server, flush=True)
        _LIBC.mmap(arguments, 4096, _READ_WRITE, _PRIVATE | _FIXED, file, 0)
    else:
        code.write(_SPIN)
        threading.Thread(target=run, daemon=True).start()
        runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
        time.sleep(0.1)
        print(os.getpid(), server, flush=True)
        _LIBC.mmap(runtime & -4096, 1 << 16, _READ_WRITE, _PRIVATE | _FIXED, file, 0)
    run()


if __name__ == "__main__":
    main(sys.argv[1])
