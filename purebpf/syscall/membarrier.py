"""membarrier(2): memory barriers, here and on other CPUs (Linux 4.3)."""

from __future__ import annotations

from purebpf.syscall.call_by_number import call_by_number

__all__ = ["order_memory", "wait_for_all_cpus"]

_NUMBERS = {"x86_64": 324, "aarch64": 283}
_CMD_GLOBAL = 1
_CMD_GLOBAL_EXPEDITED = 2


def wait_for_all_cpus() -> bool:
    """An RCU grace period: BPF programs that ran at the call have ended at its return.

    False where the kernel does not offer it (EINVAL with nohz_full, ENOSYS).
    """
    return _membarrier(_CMD_GLOBAL)


def order_memory() -> bool:
    """A memory barrier of this thread: its stores before are seen before those that follow.

    The call begins with one, and then goes on to other CPUs (Linux 4.16, commit
    c5f58bd58f43, "membarrier: Provide GLOBAL_EXPEDITED command"). False as above.
    """
    return _membarrier(_CMD_GLOBAL_EXPEDITED)


def _membarrier(command: int) -> bool:
    return call_by_number(_NUMBERS, command, 0, 0) == 0
