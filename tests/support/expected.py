"""What the kernels of the matrix are known to offer, so that a probe that fails cannot hide a test.

The matrix names the kernel that it boots in PUREBPF_KERNEL. A test whose need is expected there
and not met then fails instead of being skipped, and `features` must say of each kernel exactly
what is written here.
"""

from __future__ import annotations

import os

__all__ = ["ABSENT", "kernel", "needs_of"]

_NEEDS = frozenset(
    {
        "bpf",
        "bpffs",
        "cgroup2",
        "guest",
        "hotplug",
        "kprobes",
        "mount_namespace",
        "perf_event",
        "pid_namespace",
        "tracefs",
        "trampolines",
        "struct_ops",
        "vmlinux_btf",
        # what scripts/test_kernels.sh installs, and Debian's essential packages
        "bpftool",
        "gcc",
        "setpriv",
        "unshare",
    }
)

_SINCE = {
    "5.10": frozenset[str](),
    "6.1": frozenset(
        {
            "bpf_lsm",
            "function_cookies",
            "kernel_variable_types",
            "kernel_variables",
            "modules",
            "new_iterators",
            "syscall_programs",
        }
    ),
    "6.12": frozenset({"kprobe_multi", "kprobe_session", "struct_ops_links", "uprobe_multi"}),
    "7.2": frozenset({"uprobe_session"}),
}
"""Needs that this series is the first of the matrix to meet, as Debian configures it."""

_NO_LIRC = frozenset({"program type LIRC_MODE2"})

ABSENT: dict[str, frozenset[str]] = {
    "5.10": _NO_LIRC
    | {
        "program type SYSCALL",
        "program type NETFILTER",
        "map type TASK_STORAGE",
        "map type BLOOM_FILTER",
        "map type USER_RINGBUF",
        "map type CGRP_STORAGE",
        "map type ARENA",
        "BTF kind FLOAT",
        "BTF kind DECL_TAG",
        "BTF kind TYPE_TAG",
        "BTF kind ENUM64",
        "links of perf events",
        "helper get_attach_cookie in program type PERF_EVENT",
        "multi-uprobes",
        "question marks in BTF",
    },
    "6.1": _NO_LIRC
    | {
        "program type NETFILTER",
        "map type CGRP_STORAGE",
        "map type ARENA",
        "multi-uprobes",
        "question marks in BTF",
    },
    "6.12": _NO_LIRC,
    "7.2": _NO_LIRC,
}
"""The names of `purebpf.kernel.features` that each kernel of the matrix does not have."""


def kernel() -> str:
    """The kernel of the matrix that runs this, or ""."""
    return os.environ.get("PUREBPF_KERNEL", "")


def needs_of(series: str) -> frozenset[str]:
    """The needs (tests/support/probes.py) that kernel `series` meets.

    Raises:
        KeyError: a series without a row here, so that a new kernel gets one.
    """
    if series not in _SINCE:
        raise KeyError(series)
    names = list(_SINCE)  # from the oldest to the newest
    return _NEEDS.union(*(_SINCE[name] for name in names[: names.index(series) + 1]))
