"""Waiting for the kernel to free what is not referred to any more (an RCU grace period)."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable

from purebpf.errors import KernelError
from purebpf.syscall.descriptor import Descriptor


def is_gone(open_by_id: Callable[[int], Descriptor], number: int, patience_s: float = 5) -> bool:
    """Whether the object of that id ends in time; `open_by_id` is a *_get_fd_by_id command."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        try:
            open_by_id(number).close()
        except KernelError as error:
            if error.errno not in (errno.ENOENT, errno.EAGAIN):
                raise
            return True
        time.sleep(0.005)
    return False
