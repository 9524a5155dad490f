"""Map operations a second: `Map`, the reused buffers below it, and a call built from scratch.

sudo python bench/map_element.py
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Callable

from purebpf.abi.bpf import bpf_map_type
from purebpf.kernel.map import Map
from purebpf.spec import MapSpec
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor
from purebpf.syscall.element import Elements

ENTRIES = 10_000
KEYS = [struct.pack("=I", number) for number in range(ENTRIES)]


class Attr(ctypes.Structure):
    _fields_ = [
        ("map_fd", ctypes.c_uint32),
        ("key", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
    ]


def from_scratch(fd: int) -> None:
    """What a binding written in an afternoon does (x86_64)."""
    libc = ctypes.CDLL(None, use_errno=True)
    for raw in KEYS:
        key = ctypes.create_string_buffer(raw, 4)
        value = ctypes.create_string_buffer(8)
        attr = Attr(fd, ctypes.addressof(key), ctypes.addressof(value), 0)
        libc.syscall(321, 1, ctypes.byref(attr), ctypes.sizeof(attr))
        bytes(value)


def plain_function(fd: int) -> None:
    value = bytearray(8)
    for raw in KEYS:
        bpf.map_lookup_elem(fd, raw, value)


def elements(fd: int) -> None:
    with Descriptor(os.dup(fd)) as descriptor:
        element = Elements(descriptor, 4, 8).take()
        for raw in KEYS:
            element.key[:] = raw
            element.lookup()
            bytes(element.value)


def measure(name: str, work: Callable[[], object], count: int = ENTRIES) -> None:
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    print(f"{name:38s} {count / best / 1e3:10.0f} thousand/s")


def main() -> None:
    with Map.create(MapSpec("bench", bpf_map_type.BPF_MAP_TYPE_HASH, 4, 8, ENTRIES)) as m:
        pairs = [(raw, raw * 2) for raw in KEYS]
        measure("update, in bulk", lambda: m.update(pairs))
        measure("update, m[key] = value", lambda: [m.put(*pair) for pair in pairs])
        measure("lookup, m[key]", lambda: [m[raw] for raw in KEYS])
        measure("lookup, reused buffers", lambda: elements(m.fileno()))
        measure("lookup, bpf.map_lookup_elem", lambda: plain_function(m.fileno()))
        measure("lookup, ctypes from scratch", lambda: from_scratch(m.fileno()))
        measure("items, in bulk", lambda: dict(m.items()))
        measure("keys, in bulk", lambda: list(m))
        measure("missing key, m.get", lambda: [m.get(b"none") for _ in KEYS])


if __name__ == "__main__":
    main()
