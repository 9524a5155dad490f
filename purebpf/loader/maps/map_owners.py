"""Keys of local storage: a process by its id, a cgroup or a file by its path.

The kernel takes a descriptor of each. A descriptor opened here lives as long as the bytes that hold
its number, and so through the call that uses them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

from purebpf.abi.bpf import bpf_map_type
from purebpf.errors import KernelError
from purebpf.loader.maps.map_plain_codecs import Handle
from purebpf.syscall.descriptor import Fresh

__all__ = ["OwnerKey", "Owners"]

_PIDFD_THREAD = os.O_EXCL
"""For a thread that does not lead its process: Linux 6.9, commit 64bef697d33b."""

_BY_PATH = frozenset(
    {bpf_map_type.BPF_MAP_TYPE_CGRP_STORAGE, bpf_map_type.BPF_MAP_TYPE_INODE_STORAGE}
)


class OwnerKey(bytes):
    """The bytes of a descriptor that is closed with them."""

    opened: Fresh


class Owners(Handle):
    """The arguments of `Handle`, and an id (task storage) or a path (of cgroups and inodes)."""

    def __init__(self, map_type: int) -> None:
        super().__init__(4)
        self._open: Callable[[Any], int] | None = None
        self._kinds: type | tuple[type, ...] = ()
        if map_type == bpf_map_type.BPF_MAP_TYPE_TASK_STORAGE:
            self._kinds, self._open = int, _open_task
        elif map_type in _BY_PATH:
            self._kinds, self._open = (str, os.PathLike), _open_path

    def encode(self, value: Any, /) -> bytes:
        """The bytes of the descriptor.

        Raises:
            SchemaError: not something that owns storage of this kind.
            KernelError: there is no such process, thread, cgroup or file.
        """
        if self._open is None or not isinstance(value, self._kinds):
            return super().encode(value)
        opened = Fresh(self._open(value))
        key = OwnerKey(self._format.pack(opened))
        key.opened = opened
        return key

    def writer(self) -> Callable[[bytearray, Any], bytes]:
        """Return a function that puts a key into an element, and returns the object that keeps
        it open.
        """

        def write(buffer: bytearray, value: Any) -> bytes:
            key = buffer[:] = self.encode(value)
            return key

        return write


def _open_task(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT) and pid > 0:
            return _open_thread(pid)
        raise _explain(error, "pidfd_open(2)", f"process {pid}") from None


def _open_thread(tid: int) -> int:
    try:
        return os.pidfd_open(tid, _PIDFD_THREAD)
    except OSError as error:
        raise _explain(
            error,
            "pidfd_open(2)",
            f"thread {tid}",
            why="a thread other than a process's first needs Linux 6.9",
        ) from None


def _open_path(path: str | os.PathLike[str]) -> int:
    try:
        return os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        raise _explain(error, "open(2)", os.fsdecode(path)) from None


def _explain(error: OSError, call: str, description: str, *, why: str = "") -> KernelError:
    if error.errno == errno.ESRCH:
        why = "there is no such process"
    return KernelError(call, error.errno or 0, description, why=why)
