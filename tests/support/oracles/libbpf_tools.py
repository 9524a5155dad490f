"""The BPF objects inside the programs of Debian's `libbpf-tools` package.

Each program carries its object whole (`bpftool gen skeleton`), in its read-only data. Nothing of
them is kept in the tree: tests read what is installed.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

_START = b"\x7fELF\x02\x01\x01"
_RELOCATABLE = 1
_BPF = 247
_LIST = Path("/var/lib/dpkg/info/libbpf-tools.list")


@cache
def objects() -> Mapping[str, bytes]:
    """The object of each installed program, by the program's name; the first, if it has two."""
    found: dict[str, bytes] = {}
    if not _LIST.exists():
        return found
    for line in _LIST.read_text().split():
        path = Path(line)
        if path.parent.name == "sbin" and path.is_file() and not path.is_symlink():
            for image in embedded(path.read_bytes()):
                found.setdefault(path.name, image)
    return found


def version() -> str:
    """The version of the installed package."""
    command = ["dpkg-query", "--show", "--showformat=${Version}", "libbpf-tools"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def embedded(program: bytes) -> Iterator[bytes]:
    """The BPF objects inside a program's file."""
    at = program.find(_START, 1)
    while at >= 0:
        kind, machine = struct.unpack_from("<HH", program, at + 16)
        if (kind, machine) == (_RELOCATABLE, _BPF):
            (headers,) = struct.unpack_from("<Q", program, at + 40)
            size, count = struct.unpack_from("<HH", program, at + 58)
            yield program[at : at + headers + size * count]
        at = program.find(_START, at + 1)
