"""The BTF of the running kernel."""

from __future__ import annotations

import errno
import os
import struct
from functools import cache

from purebpf.btf.types.parse import Btf, with_distinct_names
from purebpf.errors import KernelError, NotSupportedError, errno_name
from purebpf.syscall.memory import lasting_view

__all__ = ["has_kernel_btf", "kernel_btf", "no_types", "read_kernel_btf"]

_PATH = "/sys/kernel/btf/vmlinux"
_HEADER_SIZE = 24


def has_kernel_btf() -> bool:
    """Return True if the kernel shows its types, without reading them."""
    return os.access(_PATH, os.R_OK)


@cache
def kernel_btf() -> Btf:
    """The types of the running kernel, read once (5 MB) and kept; mapped where the kernel can.

    The index of their names comes from the user's caches (6 ms), or is built (60 ms) and cached.
    pahole and resolve_btfids, which write them, keep one of equal strings: `btf__dedup` and
    `btf__add_str` of libbpf (tools/lib/bpf/btf.c and strset.c).

    Raises:
        NotSupportedError: a kernel built without CONFIG_DEBUG_INFO_BTF, or BTF it cannot show.
        FormatError: it is malformed.
    """
    from purebpf.loader.types.kept_index import keep_index, kept_index  # most runs have answers

    data = _read()
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
    return bytes(_read())


def _read() -> bytes | memoryview:
    """Return the BTF, mapped if the kernel can, or else read. Raises as `read_kernel_btf`."""
    try:
        with open(_PATH, "rb") as file:
            return _mapped(file.fileno()) or file.read()
    except OSError as error:
        reason = f"reading {_PATH} failed with {errno_name(error.errno or 0)}"
        if error.errno == errno.ENOENT:
            reason += "; the kernel was built without CONFIG_DEBUG_INFO_BTF"
        raise NotSupportedError("kernel BTF", reason) from None


def _mapped(fd: int) -> memoryview:
    """The file by mmap(2), which copies no pages; empty if the file cannot be mapped.

    Linux 6.16, commit a539e2a6d51d ("btf: Allow mmap of vmlinux btf").
    """
    size = os.fstat(fd).st_size
    try:
        return lasting_view(fd, size) if size else memoryview(b"")
    except KernelError:
        return memoryview(b"")


def no_types() -> Btf:
    """The types of a kernel without BTF: none. For objects with settings that need none."""
    names = b"\0"
    header = struct.pack("=HBBIIIII", 0xEB9F, 1, 0, _HEADER_SIZE, 0, 0, 0, len(names))
    return Btf(header + names, source="a kernel without BTF")
