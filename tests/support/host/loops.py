"""Block devices of a test's own: loop(4), which is blk-mq as disks are."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from purebpf.errors import errno_name
from tests.support.host import modules

__all__ = ["loop_device", "missing", "missing_ext4", "written"]

_SET_FD, _CLEAR_FD, _GET_FREE = 0x4C00, 0x4C01, 0x4C82  # include/uapi/linux/loop.h
_CONTROL = "/dev/loop-control"


def missing() -> str:
    """Why there are no loop devices, or ""."""
    modules.offer("loop")
    try:
        control = os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        return f"{_CONTROL}: {error.strerror}"
    try:
        fcntl.ioctl(control, _GET_FREE)
    except OSError as error:
        return f"LOOP_CTL_GET_FREE says {errno_name(error.errno or 0)}"
    finally:
        os.close(control)
    return ""


def missing_ext4() -> str:
    """Why such file systems cannot be mounted, or ""."""
    modules.offer("crc32c_generic", "ext4")  # which asks for it by another name
    known = Path("/proc/filesystems").read_text().split()
    return "" if "ext4" in known else "/proc/filesystems does not have ext4"


@contextmanager
def loop_device(file: Path, size: int) -> Iterator[str]:
    """The name of a device of so many bytes, which a file backs."""
    with file.open("wb") as backing:
        backing.truncate(size)
    control = os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)
    backing_fd = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    try:
        name = f"loop{fcntl.ioctl(control, _GET_FREE)}"
        device = os.open(f"/dev/{name}", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.ioctl(device, _SET_FD, backing_fd)
            try:
                yield name
            finally:
                fcntl.ioctl(device, _CLEAR_FD)
        finally:
            os.close(device)
    finally:
        os.close(backing_fd)
        os.close(control)


def written(name: str) -> dict[str, int]:
    """What the kernel counts of a disk: requests and sectors, by reads and writes."""
    for line in Path("/proc/diskstats").read_text().splitlines():
        _, _, device, *counts = line.split()
        if device == name:
            reads, _, read_sectors, _, writes, _, write_sectors, *_ = map(int, counts)
            return {
                "reads": reads,
                "writes": writes,
                "read_sectors": read_sectors,
                "write_sectors": write_sectors,
            }
    raise AssertionError(f"/proc/diskstats does not have {name}")
