"""The properties of map types, as sets of types (kernel/bpf/*map*.c, libbpf.c)."""

from __future__ import annotations

from purebpf.abi.bpf import bpf_map_type as t
from purebpf.abi.names import member_name
from purebpf.syscall.map_sizes import FD_SIZE, FD_VALUES, MAP_VALUES, PER_CPU

__all__ = [
    "ARRAYS",
    "BATCHED",
    "ENDLESS",
    "FD_KEYS",
    "FD_SIZE",
    "FD_VALUES",
    "INDEXED",
    "KEYLESS",
    "MAP_VALUES",
    "PER_CPU",
    "REDIRECTS",
    "RINGS",
    "SLOTS",
    "SOCKETS",
    "UNTYPED",
    "type_name",
]

ARRAYS = frozenset({t.BPF_MAP_TYPE_ARRAY, t.BPF_MAP_TYPE_PERCPU_ARRAY, t.BPF_MAP_TYPE_INSN_ARRAY})
"""Every index is there from the start and for ever."""

INDEXED = ARRAYS | {
    t.BPF_MAP_TYPE_ARRAY_OF_MAPS,
    t.BPF_MAP_TYPE_PROG_ARRAY,
    t.BPF_MAP_TYPE_PERF_EVENT_ARRAY,
    t.BPF_MAP_TYPE_CGROUP_ARRAY,
    t.BPF_MAP_TYPE_DEVMAP,
    t.BPF_MAP_TYPE_CPUMAP,
    t.BPF_MAP_TYPE_XSKMAP,
    t.BPF_MAP_TYPE_SOCKMAP,
    t.BPF_MAP_TYPE_REUSEPORT_SOCKARRAY,
    t.BPF_MAP_TYPE_STACK_TRACE,
    t.BPF_MAP_TYPE_STRUCT_OPS,
}
"""The key is a 4-byte index (or stack id) in the byte order of the host."""

SOCKETS = frozenset(
    {
        t.BPF_MAP_TYPE_SOCKMAP,
        t.BPF_MAP_TYPE_SOCKHASH,
        t.BPF_MAP_TYPE_XSKMAP,
        t.BPF_MAP_TYPE_REUSEPORT_SOCKARRAY,
    }
)
"""A value goes in as a socket's descriptor and comes out, where it does, as its cookie."""

REDIRECTS = frozenset(
    {
        t.BPF_MAP_TYPE_DEVMAP,
        t.BPF_MAP_TYPE_DEVMAP_HASH,
        t.BPF_MAP_TYPE_CPUMAP,
    }
)
"""A 4-byte value is an interface index or a queue size; an 8-byte one adds a program."""

SLOTS = INDEXED - ARRAYS - {t.BPF_MAP_TYPE_STACK_TRACE, t.BPF_MAP_TYPE_STRUCT_OPS}
"""An index may be empty."""

KEYLESS = frozenset(
    {
        t.BPF_MAP_TYPE_QUEUE,
        t.BPF_MAP_TYPE_STACK,
        t.BPF_MAP_TYPE_BLOOM_FILTER,
    }
)
"""Push and pop, or test for membership."""

RINGS = frozenset({t.BPF_MAP_TYPE_RINGBUF, t.BPF_MAP_TYPE_USER_RINGBUF})
"""Memory shared with the program; no elements."""

FD_KEYS = frozenset(
    {
        t.BPF_MAP_TYPE_SK_STORAGE,
        t.BPF_MAP_TYPE_INODE_STORAGE,
        t.BPF_MAP_TYPE_TASK_STORAGE,
        t.BPF_MAP_TYPE_CGRP_STORAGE,
    }
)
"""The kernel takes a descriptor as key: a socket, a file, a pidfd, a cgroup directory."""

ENDLESS = RINGS | FD_KEYS | KEYLESS | {t.BPF_MAP_TYPE_ARENA}
"""The keys cannot be listed."""

BATCHED = ARRAYS - {t.BPF_MAP_TYPE_INSN_ARRAY} | {
    t.BPF_MAP_TYPE_HASH,
    t.BPF_MAP_TYPE_LRU_HASH,
    t.BPF_MAP_TYPE_PERCPU_HASH,
    t.BPF_MAP_TYPE_LRU_PERCPU_HASH,
    t.BPF_MAP_TYPE_HASH_OF_MAPS,
}
"""A batch lookup sees each bucket or index once, whatever changes during it.

Batches of other types follow keys, as BPF_MAP_GET_NEXT_KEY does, and start over when one vanishes.
"""

UNTYPED = RINGS | {
    t.BPF_MAP_TYPE_PERF_EVENT_ARRAY,
    t.BPF_MAP_TYPE_CGROUP_ARRAY,
    t.BPF_MAP_TYPE_STACK_TRACE,
    t.BPF_MAP_TYPE_ARRAY_OF_MAPS,
    t.BPF_MAP_TYPE_HASH_OF_MAPS,
    t.BPF_MAP_TYPE_DEVMAP,
    t.BPF_MAP_TYPE_DEVMAP_HASH,
    t.BPF_MAP_TYPE_CPUMAP,
    t.BPF_MAP_TYPE_XSKMAP,
    t.BPF_MAP_TYPE_SOCKMAP,
    t.BPF_MAP_TYPE_SOCKHASH,
    t.BPF_MAP_TYPE_QUEUE,
    t.BPF_MAP_TYPE_STACK,
    t.BPF_MAP_TYPE_ARENA,
}
"""The kernel refuses BTF ids for their keys and values (no map_check_btf)."""


def type_name(map_type: int) -> str:
    """`"HASH"` for BPF_MAP_TYPE_HASH; the number for a type this purebpf does not know."""
    return member_name(t, map_type, prefix="BPF_MAP_TYPE_").removesuffix("_DEPRECATED")
