"""membarrier(2): wait until every CPU has left what it was doing (Linux 4.3)."""

from __future__ import annotations

import ctypes
import os

__all__ = ["wait_for_all_cpus"]

_NUMBERS = {"x86_64": 324, "aarch64": 283}
_CMD_GLOBAL = 1


def wait_for_all_cpus() -> bool:
    """An RCU grace period: BPF programs that ran at the call have ended at its return.

    False where the kernel does not offer it (EINVAL with nohz_full, ENOSYS).
    """
    number = _NUMBERS.get(os.uname().machine)
    if number is None:
        return False
    syscall = ctypes.CDLL(None).syscall
    syscall.restype = ctypes.c_long
    syscall.argtypes = [ctypes.c_long] * 4
    return bool(syscall(number, _CMD_GLOBAL, 0, 0) == 0)
