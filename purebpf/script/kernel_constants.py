"""Macros of the kernel's headers: constants that neither BTF nor the headers of user space have.

Sources: include/linux/sched.h, include/linux/fs_types.h, include/uapi/linux/icmp.h and icmpv6.h,
include/uapi/linux/if_ether.h, include/linux/kdev_t.h, include/vdso/time64.h.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["KERNEL_CONSTANTS"]

_TASK_STATES: Mapping[str, int] = {
    "TASK_RUNNING": 0x0, "TASK_INTERRUPTIBLE": 0x1, "TASK_UNINTERRUPTIBLE": 0x2,
    "__TASK_STOPPED": 0x4, "__TASK_TRACED": 0x8, "EXIT_DEAD": 0x10, "EXIT_ZOMBIE": 0x20,
    "EXIT_TRACE": 0x30, "TASK_PARKED": 0x40, "TASK_DEAD": 0x80, "TASK_WAKEKILL": 0x100,
    "TASK_WAKING": 0x200, "TASK_NOLOAD": 0x400, "TASK_NEW": 0x800, "TASK_KILLABLE": 0x102,
    "TASK_STOPPED": 0x104, "TASK_IDLE": 0x402, "TASK_NORMAL": 0x3,
}  # fmt: skip
_TASK_FLAGS: Mapping[str, int] = {
    "PF_IDLE": 0x2, "PF_EXITING": 0x4, "PF_IO_WORKER": 0x10, "PF_WQ_WORKER": 0x20,
    "PF_FORKNOEXEC": 0x40, "PF_SUPERPRIV": 0x100, "PF_DUMPCORE": 0x200, "PF_SIGNALED": 0x400,
    "PF_MEMALLOC": 0x800, "PF_KSWAPD": 0x20000, "PF_KTHREAD": 0x200000,
}  # fmt: skip
_FILES: Mapping[str, int] = {
    "DT_UNKNOWN": 0, "DT_FIFO": 1, "DT_CHR": 2, "DT_DIR": 4, "DT_BLK": 6, "DT_REG": 8,
    "DT_LNK": 10, "DT_SOCK": 12, "DT_WHT": 14, "MINORBITS": 20, "MINORMASK": (1 << 20) - 1,
}  # fmt: skip
_NETWORK: Mapping[str, int] = {
    "ICMP_ECHOREPLY": 0, "ICMP_DEST_UNREACH": 3, "ICMP_REDIRECT": 5, "ICMP_ECHO": 8,
    "ICMP_TIME_EXCEEDED": 11, "ICMP_TIMESTAMP": 13, "ICMPV6_ECHO_REQUEST": 128,
    "ICMPV6_ECHO_REPLY": 129, "ETH_P_IP": 0x0800, "ETH_P_ARP": 0x0806, "ETH_P_8021Q": 0x8100,
    "ETH_P_IPV6": 0x86DD, "ETH_ALEN": 6,
}  # fmt: skip
_TIMES: Mapping[str, int] = {
    "MSEC_PER_SEC": 10**3, "USEC_PER_MSEC": 10**3, "NSEC_PER_USEC": 10**3, "USEC_PER_SEC": 10**6,
    "NSEC_PER_MSEC": 10**6, "NSEC_PER_SEC": 10**9,
}  # fmt: skip
KERNEL_CONSTANTS: Mapping[str, int] = {
    **_TASK_STATES, **_TASK_FLAGS, **_FILES, **_NETWORK, **_TIMES,
}  # fmt: skip
"""Values by name."""
