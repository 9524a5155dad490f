"""The kernel's own BTF, and giving it ours."""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType, TracebackType
from typing import NamedTuple, Self

from purebpf.btf.parse import Btf
from purebpf.errors import KernelError, NotSupportedError, errno_name
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor

__all__ = ["UNRELATED", "Upload", "kernel_btf", "no_types", "upload"]

_PATH = "/sys/kernel/btf/vmlinux"
_HEADER_SIZE = 24
UNRELATED = frozenset({errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""Errors of the machine; any other says something about the BTF, or that there is none for us."""


@cache
def kernel_btf() -> Btf:
    """The types of the running kernel, read once (5 MB, some 15 ms) and kept.

    Raises:
        NotSupportedError: a kernel built without CONFIG_DEBUG_INFO_BTF, or BTF it cannot show.
        FormatError: it is malformed.
    """
    try:
        with open(_PATH, "rb") as file:
            data = file.read()
    except OSError as error:
        reason = f"{_PATH} gave {errno_name(error.errno or 0)}"
        if error.errno == errno.ENOENT:
            reason += "; the kernel was built without CONFIG_DEBUG_INFO_BTF"
        raise NotSupportedError("kernel BTF", reason) from None
    return Btf(data, source=_PATH)


def no_types() -> Btf:
    """Those of a kernel that has none: for objects whose settings leave nothing alive that asks."""
    names = b"\0"
    header = struct.pack("=HBBIIIII", 0xEB9F, 1, 0, _HEADER_SIZE, 0, 0, 0, len(names))
    return Btf(header + names, source="a kernel without BTF")


class Upload(NamedTuple):
    """What became of an object's BTF.

    Attributes:
        descriptor: the BTF in the kernel, or None when the kernel takes none of it: maps then have
            no types, and programs no function or line info.
        functions: whether it still describes functions, so that programs can refer to them.
        problem: what the kernel refused, or "".
        copies: by type of program, functions that have a copy to be named instead.
    """

    descriptor: Descriptor | None
    functions: bool
    problem: str
    copies: Mapping[int, Mapping[int, int]] = MappingProxyType({})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.descriptor is not None:
            self.descriptor.close()


def upload(btf: Btf) -> Upload:
    """Give the kernel an object's BTF (BPF_BTF_LOAD, Linux 4.18), simplified when it must be.

    BTF is a description: an object whose BTF is refused still loads, as it does with libbpf.

    Raises:
        KernelError: the call failed for a reason other than the BTF: ENOMEM, EMFILE.
    """
    try:
        return Upload(bpf.btf_load(btf.data), functions=True, problem="")
    except KernelError as error:
        if error.errno in UNRELATED:
            raise
        from purebpf.kernel.btf_fallback import upload_simplified

        return upload_simplified(btf, error)
