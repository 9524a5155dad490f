"""Groups the mappings of a process by the part of the program that uses them. Pure."""

from __future__ import annotations

import re
from collections import Counter

from purebpf.tuples import NamedTuple

__all__ = ["sum_areas"]

_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) \S{4} \S+ \S+ \d+ *(.*)")
_SIZE = re.compile(r"(Rss|Anonymous|Swap): +(\d+) kB")
_ARENA = 64 << 20
"""Addresses of malloc's arenas of threads are multiples of this (glibc, HEAP_MAX_SIZE)."""
_V8_PAGE = 256 << 10
"""V8 reserves its heap in chunks that are aligned to this (kRegularPageSize)."""
_JAVA_HEAP_END = 32 << 30
"""Compressed pointers reach heaps below this address."""
_GO_HEAP = range(0xC000000000, 0xE000000000)
"""Addresses at which Go's runtime reserves its heap on 64-bit machines (runtime/malloc.go)."""
_SHARED = ("/dev/shm/", "/memfd:", "/SYSV", "/dev/zero")  # noqa: S108 - names of mappings


def sum_areas(smaps: str) -> dict[str, int]:
    """Return the bytes in memory and swap by area, of memory that is not a file's.

    Args:
        smaps: the text of /proc/PID/smaps, proc(5).
    """
    runtime = _runtime(smaps)
    mappings: list[_Mapping] = []
    field = "Anonymous"
    for line in smaps.splitlines():
        if found := _MAPPING.match(line):
            start, path = int(found[1], 16), found[3]
            while mappings and start < mappings[-1].end:
                mappings.pop()  # grew while the kernel wrote the text, and is there again
            field = "Rss" if path.startswith(_SHARED) else "Anonymous"
            mappings.append(_Mapping(int(found[2], 16), _area(start, path, runtime), []))
        elif (size := _SIZE.match(line)) and size[1] in (field, "Swap"):
            mappings[-1].sizes.append(int(size[2]) * 1024)
    sums: Counter[str] = Counter()
    for mapping in mappings:
        sums[mapping.area] += sum(mapping.sizes)
    return {name: size for name, size in sums.items() if size}


class _Mapping(NamedTuple):
    end: int
    area: str
    sizes: list[int]


def _runtime(smaps: str) -> str:
    """Return the language runtime of a process, by the files that it has mapped, or ""."""
    for runtime, pattern in (
        ("java", r"/libjvm\.so$"),
        ("node", r"/(node|nodejs|libnode\.so[.\d]*)$"),
        ("python", r"/(python[\d.]*t?|libpython[\w.]*\.so[.\d]*)$"),
    ):
        if re.search(pattern, smaps, re.MULTILINE):
            return runtime
    return ""


def _area(start: int, path: str, runtime: str) -> str:
    if path.startswith(_SHARED):
        return "shared memory"
    if path == "[heap]":
        return "malloc's heap (brk)"
    if path.startswith("[stack"):
        return "the stack"
    if path.startswith(("[anon:", "[anon_shmem:")):
        return path.partition(":")[2].removesuffix("]")
    if path:
        return "changed pages of files"
    if start in _GO_HEAP:
        return "Go's heap"
    if runtime == "java" and start < _JAVA_HEAP_END:
        return "Java's heap"
    if start % _ARENA == 0:
        return "malloc's arenas of threads"
    if runtime == "node" and start % _V8_PAGE == 0:
        return "V8's heap"
    if runtime == "python":
        return "Python's arenas of objects, and large blocks of malloc (mmap)"
    return "anonymous mappings (mmap)"
