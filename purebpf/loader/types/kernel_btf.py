"""The BTF of the running kernel."""

from __future__ import annotations

import errno
import mmap
import os
import struct
from functools import cache

from purebpf.btf.types.parse import Btf, with_distinct_names
from purebpf.errors import NotSupportedError, errno_name
from purebpf.loader.types.kept_index import keep_index, kept_index

__all__ = ["kernel_btf", "no_types", "read_kernel_btf"]

_PATH = "/sys/kernel/btf/vmlinux"
_HEADER_SIZE = 24


@cache
def kernel_btf() -> Btf:
    """The types of the running kernel, read once (5 MB) and kept.

    The index of their names comes from the user's caches (6 ms), or is built (60 ms) and cached.
    pahole and resolve_btfids, which write them, keep one of equal strings: `btf__dedup` and
    `btf__add_str` of libbpf (tools/lib/bpf/btf.c and strset.c).

    Raises:
        NotSupportedError: a kernel built without CONFIG_DEBUG_INFO_BTF, or BTF it cannot show.
        FormatError: it is malformed.
    """
    data = read_kernel_btf()
    if (indexed := kept_index(data, _PATH)) is not None:
        return with_distinct_names(indexed)
    btf = with_distinct_names(Btf(data, source=_PATH))
    keep_index(btf)
    return btf


def read_kernel_btf() -> bytes:
    """The BTF of the running kernel as it is.

    Raises:
        NotSupportedError: a kernel built without CONFIG_DEBUG_INFO_BTF, or BTF it cannot show.
    """
    try:
        with open(_PATH, "rb") as file:
            return _mapped(file.fileno()) or file.read()
    except OSError as error:
        reason = f"reading {_PATH} failed with {errno_name(error.errno or 0)}"
        if error.errno == errno.ENOENT:
            reason += "; the kernel was built without CONFIG_DEBUG_INFO_BTF"
        raise NotSupportedError("kernel BTF", reason) from None


def _mapped(fd: int) -> bytes:
    """The file by mmap(2), a third quicker than 1,350 pages by read(2); b"" where it has none.

    Linux 6.16, commit a539e2a6d51d ("btf: Allow mmap of vmlinux btf").
    """
    try:
        with mmap.mmap(fd, os.fstat(fd).st_size, mmap.MAP_PRIVATE, mmap.PROT_READ) as mapping:
            return mapping[:]
    except (OSError, ValueError):  # ValueError: a file that does not say how long it is
        return b""


def no_types() -> Btf:
    """The types of a kernel without BTF: none. For objects with settings that need none."""
    names = b"\0"
    header = struct.pack("=HBBIIIII", 0xEB9F, 1, 0, _HEADER_SIZE, 0, 0, 0, len(names))
    return Btf(header + names, source="a kernel without BTF")
