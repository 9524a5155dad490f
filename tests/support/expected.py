"""What the kernels of the matrix are known to offer, so that a probe that fails cannot hide a test.

The matrix names the kernel that it boots in PUREBPF_KERNEL, and `.ci/run` calls the machine that it
runs on `ci`. A test with a need that is expected there and not met then fails instead of being
skipped, and `features` must say of each guest exactly what is written here.
"""

from __future__ import annotations

import os

__all__ = ["ABSENT", "GUESTS", "KNOWN", "NOT_ON_CI", "kernel", "needs_of"]

_EVERYWHERE = frozenset(
    {"bpf", "bpffs", "cgroup2", "net_namespace", "perf_event", "tracefs", "vmlinux_btf"}
)

_INSTALLED = frozenset(
    # what scripts/packages.sh brings, and Debian's essential packages
    {"bpftool", "clang", "g++", "gcc", "nm", "objcopy", "perf", "readelf", "xz"}
    | {"mount_namespace", "pid_namespace", "setpriv", "ss", "strace", "tc", "unshare"}
)

_GUEST = frozenset({"guest", "hotplug", "kprobes", "struct_ops", "trampolines"})

_CI = frozenset(
    {"atomic_fetch", "callbacks", "cgroup_order", "cgroup_unix", "clsact", "current_task_btf"}
    | {"exact_raw_tracepoints", "memory_arguments", "memory_by_cgroup", "page_sizes"}
    | {"netfilter_link", "new_iterators", "sk_skb_verdict", "sockmap_link", "syscall_programs"}
    | {"tcx", "user_ring_buffer", "veth"}
)
"""What the kernel of the CI machine must have besides."""

NOT_ON_CI = frozenset(
    {"bpf_lsm", "freplace", "guest", "hotplug", "insn_array", "kernel_variables", "kprobe_multi"}
    | {"kprobe_session", "kprobes", "lsm_cgroup", "modules", "netkit", "rhash", "tracing_multi"}
    | {"tracing_session", "trampolines"}
)
"""What the CI machine does not have: `.ci/run` runs the tests that need it in a guest."""

_SINCE = {
    "5.10": frozenset(
        {"clsact", "freplace", "kernel_config", "route_programs", "segment_programs", "veth"}
    ),
    "6.1": frozenset(
        {
            "atomic_fetch",
            "bloom_filter",
            "bpf_lsm",
            "callbacks",
            "current_task_btf",
            "dummy_struct_ops",
            "function_addresses",
            "function_cookies",
            "inode_storage",
            "kernel_variable_types",
            "kernel_variables",
            "lsm_cgroup",
            "memory_arguments",
            "memory_by_cgroup",
            "modules",
            "new_iterators",
            "page_sizes",
            "pinned_by_users",
            "perf_event_links",
            "sk_skb_verdict",
            "syscall_programs",
            "task_pt_regs",
            "task_storage",
            "user_ring_buffer",
            "xdp_frags",
        }
    ),
    "6.12": frozenset(
        {
            "arena",
            "cgroup_storage",
            "cgroup_unix",
            "kprobe_multi",
            "kprobe_session",
            "netfilter_link",
            "netkit",
            "question_marks",
            "raw_tracepoint_cookies",
            "sample_contexts",
            "sockmap_link",
            "struct_ops_links",
            "tcx",
            "uprobe_multi",
        }
    ),
    "7.2": frozenset(
        {
            "cgroup_order",
            "exclusive_maps",
            "insn_array",
            "rhash",
            "tracing_multi",
            "tracing_session",
            "uprobe_session",
        }
    ),
}
"""Needs that this series is the first of the matrix to meet, as Debian configures it."""

_UNTIL = {"6.12": frozenset({"exact_raw_tracepoints"})}
"""Needs that this series is the last to meet."""

_ARM64 = "6.12-arm64"

_NO_LIRC = frozenset({"program type LIRC_MODE2"})
_BEFORE_7 = _NO_LIRC | {"exclusive maps", "map type INSN_ARRAY", "map type RHASH"}
_BEFORE_6_8 = _BEFORE_7 | {"context tags", "instruction set v4"}

ABSENT: dict[str, frozenset[str]] = {
    "5.10": _BEFORE_6_8
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
    "6.1": _BEFORE_6_8
    | {
        "program type NETFILTER",
        "map type CGRP_STORAGE",
        "map type ARENA",
        "multi-uprobes",
        "question marks in BTF",
    },
    "6.12": _BEFORE_7,
    "7.2": _NO_LIRC,
    _ARM64: _BEFORE_7,
}
"""The names of `purebpf.loader.features.features` that each kernel of the matrix does not have."""


GUESTS = frozenset(ABSENT)
KNOWN = GUESTS | {"ci"}


def kernel() -> str:
    """The kernel of the matrix that runs this, or ""."""
    return os.environ.get("PUREBPF_KERNEL", "")


def needs_of(series: str) -> frozenset[str]:
    """The needs (tests/support/probes.py) that kernel `series` meets.

    Raises:
        KeyError: a series without a row here, so that a new kernel gets one.
    """
    if series == "ci":
        return _EVERYWHERE | _INSTALLED | _CI
    names = list(_SINCE)  # from the oldest to the newest
    if series == _ARM64:  # Python and a shell, and nothing else is installed
        return _EVERYWHERE.union(_GUEST, *(_SINCE[name] for name in names[: names.index("6.12")]))
    if series not in _SINCE:
        raise KeyError(series)
    since = (_SINCE[name] for name in names[: names.index(series) + 1])
    until = (found for last, found in _UNTIL.items() if names.index(series) <= names.index(last))
    return _EVERYWHERE.union(_GUEST, _INSTALLED, *since, *until)
