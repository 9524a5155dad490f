"""One map operation: `Map`, the reused buffers below it, and a call built from scratch.

    python bench/map_element.py [--rounds 5]

What a binding written in an afternoon does, ctypes structures for each call, is the peer.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator

import results
from results import Figure

from purebpf.abi.bpf import bpf_map_type
from purebpf.loader.maps.map import Map
from purebpf.spec import MapSpec
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor
from purebpf.syscall.map_element import Elements

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
    """A look-up of each key (x86_64)."""
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
        element = Elements(descriptor).take()
        for raw in KEYS:
            element.key[:] = raw
            element.lookup()
            bytes(element.value)


def least_ns(work: Callable[[], object], rounds: int) -> float:
    """Nanoseconds of one of ENTRIES operations, at the least."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best / ENTRIES * 1e9


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """Each way to reach an element."""
    with Map.create(MapSpec("bench", bpf_map_type.BPF_MAP_TYPE_HASH, 4, 8, ENTRIES)) as m:
        pairs = [(raw, raw * 2) for raw in KEYS]
        m.update(pairs)
        scratch = least_ns(lambda: from_scratch(m.fileno()), options.rounds)
        ways: dict[str, Callable[[], object]] = {
            "look-up, m[key]": lambda: [m[raw] for raw in KEYS],
            "look-up, reused buffers": lambda: elements(m.fileno()),
            "look-up, bpf.map_lookup_elem": lambda: plain_function(m.fileno()),
            "missing key, m.get": lambda: [m.get(b"none") for _ in KEYS],
            "keys, in bulk": lambda: list(m),
            "items, in bulk": lambda: dict(m.items()),
            "update, m[key] = value": lambda: [m.put(*pair) for pair in pairs],
            "update, in bulk": lambda: m.update(pairs),
        }
        for name, work in ways.items():
            yield Figure(name, least_ns(work, options.rounds), "ns", "ctypes look-up", scratch)


if __name__ == "__main__":
    sys.exit(results.run(measure, results.parser(__doc__, rounds=5).parse_args()))
