"""/etc/ld.so.cache, against ldconfig."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path

import pytest

from purebpf.symbols.ld_cache import cached_libraries

CACHE = Path("/etc/ld.so.cache")


def cache(*entries: tuple[int, str, str]) -> bytes:
    """A cache with these flags, names and paths."""
    strings, rows = b"", []
    start = 48 + 24 * len(entries)
    for flags, name, path in entries:
        key = start + len(strings)
        strings += f"{name}\0".encode()
        rows.append(struct.pack("=iIIIQ", flags, key, start + len(strings), 0, 0))
        strings += f"{path}\0".encode()
    header = struct.pack("=20sIIB3xI12x", b"glibc-ld.so.cache1.1", len(rows), len(strings), 2, 0)
    return header + b"".join(rows) + strings


def test_a_library_of_the_machine() -> None:
    data = cache((0x3, "liba.so", "/32/liba.so"), (0x303, "liba.so", "/64/liba.so"))
    assert list(cached_libraries(data, "liba.so", "x86_64")) == ["/64/liba.so"]
    assert list(cached_libraries(data, "liba.so", "riscv64")) == ["/32/liba.so", "/64/liba.so"]
    assert list(cached_libraries(data, "libb.so", "x86_64")) == []
    assert list(cached_libraries(data, "lib", "x86_64", is_prefix=True)) == ["/64/liba.so"]
    assert list(cached_libraries(b"ld.so-1.7.0\0" + data, "liba.so", "x86_64")) == ["/64/liba.so"]


@pytest.mark.parametrize("size", range(0, 120, 7))
def test_a_cache_that_is_cut_short_has_less(size: int) -> None:
    data = cache((0x303, "liba.so", "/64/liba.so"))[:size]
    assert all(path in "/64/liba.so" for path in cached_libraries(data, "liba.so", "x86_64"))


def test_ldconfig_says_the_same() -> None:
    try:
        answer = subprocess.run(
            ["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        pytest.skip("no ldconfig")
    machine = os.uname().machine
    marks = {"x86_64": "libc6,x86-64", "aarch64": "libc6,AArch64"}
    rows = re.findall(r"^\t(\S+) \(([^)]*)\) => (\S+)$", answer.stdout, re.MULTILINE)
    theirs = {name: path for name, mark, path in reversed(rows) if mark == marks.get(machine)}
    data = CACHE.read_bytes()
    for name, path in list(theirs.items())[:50]:
        assert next(cached_libraries(data, name, machine)) == path
