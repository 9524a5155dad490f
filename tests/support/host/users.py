"""Doing something as another user, in a child process."""

from __future__ import annotations

import ctypes
import os
import pickle
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["as_user", "public_bpffs", "users_sampling"]

_LIBC = ctypes.CDLL(None, use_errno=True)
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


def as_user(uid: int, work: Callable[[], Any]) -> Any:
    """What `work` returns when user `uid` calls it, without any capability.

    An exception comes back as its type's name and its text; anything else must be picklable.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            try:
                result = work()
            except Exception as error:
                traceback.print_exc()
                result = (type(error).__name__, str(error))
            os.write(writer, pickle.dumps(result))
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        data = file.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child of user {uid} ended with {status}"
    return pickle.loads(data)


@contextmanager
def public_bpffs() -> Iterator[str]:
    """A bpf file system of one's own, where everyone can get to, with its root closed to others."""
    folder = tempfile.mkdtemp(prefix="purebpf-bpffs-")
    if _LIBC.mount(b"bpf", folder.encode(), b"bpf", 0, b"mode=0700"):
        raise OSError(ctypes.get_errno(), "mount(bpf)")
    try:
        yield folder
    finally:
        _LIBC.umount2(folder.encode(), 2)  # MNT_DETACH
        os.rmdir(folder)


@contextmanager
def users_sampling() -> Iterator[None]:
    """Users may sample their own processes; Debian's kernels forbid it until a sysctl allows

    it. Only a guest gets that: elsewhere the test is skipped.
    """
    before = _PARANOID.read_text()
    if int(before) > 2:
        if not os.environ.get("PUREBPF_KERNEL"):
            pytest.skip(f"kernel.perf_event_paranoid is {before.strip()}: users have no events")
        _PARANOID.write_text("2")
    try:
        yield
    finally:
        if int(before) > 2:
            _PARANOID.write_text(before)
