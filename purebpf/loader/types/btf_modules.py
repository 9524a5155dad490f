"""The types of loaded kernel modules: split BTF on top of vmlinux's (Linux 5.11).

Commit 36e68442d1af, "bpf: Load and verify kernel module BTFs".

Read from /sys/kernel/btf, which anybody may; loading a program that refers to one takes a
descriptor, which is looked up by name among all BTF, and that needs CAP_SYS_ADMIN.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from purebpf.abi.layouts import BPF_BTF_INFO
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf
from purebpf.closable import Closing
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.syscall import bpf
from purebpf.syscall.buffer import Buffer
from purebpf.syscall.descriptor import Descriptor
from purebpf.tuples import NamedTuple

__all__ = ["ModuleType", "Modules"]

_FOLDER = "/sys/kernel/btf"
_VMLINUX = "vmlinux"
_NAME_SIZE = 64  # MODULE_NAME_LEN is 56


class ModuleType(NamedTuple):
    """A type that a module has and vmlinux has not."""

    module: str
    btf: Btf
    type_id: int


class Modules(Closing):
    """The modules that have BTF, read when first asked for; closing closes their descriptors."""

    def __init__(self) -> None:
        self._types: dict[str, Btf] | None = None
        self._descriptors: dict[str, Descriptor] = {}

    def types(self) -> dict[str, Btf]:
        """The types of each module, by the module's name.

        Raises:
            NotSupportedError: vmlinux has no BTF.
            FormatError: BTF that is malformed.
        """
        if self._types is None:
            self._types = dict(_read_all())
        return self._types

    def of(self, module: str) -> Btf | None:
        """The types of one module; None: it has none.

        Raises:
            NotSupportedError: vmlinux has no BTF.
            FormatError: BTF that is malformed.
        """
        if self._types is not None:
            return self._types.get(module)
        return _read(module)

    def find(self, name: str, kind: Kind) -> list[ModuleType]:
        """The types of that name and kind in every module."""
        return [
            ModuleType(module, btf, type_id)
            for module, btf in self.types().items()
            for type_id in btf.find(name, kind)
            if type_id >= len(kernel_btf())
        ]

    def descriptor(self, module: str) -> int:
        """A descriptor of a module's BTF, which stays the Modules' own.

        Raises:
            NotSupportedError: the module is gone.
            KernelError: EPERM, without CAP_SYS_ADMIN.
        """
        if module not in self._descriptors:
            self._descriptors[module] = _open(module)
        return self._descriptors[module].fileno()

    def close(self) -> None:
        """Close the descriptors. Twice is harmless."""
        while self._descriptors:
            self._descriptors.popitem()[1].close()


def _read_all() -> Iterator[tuple[str, Btf]]:
    for name in sorted(os.listdir(_FOLDER)):
        if name == _VMLINUX:
            continue
        btf = _read(name)
        if btf is not None:  # else unloaded since it was listed
            yield name, btf


def _read(module: str) -> Btf | None:
    path = f"{_FOLDER}/{module}"
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    return Btf(data, kernel_btf(), path)


def _open(module: str) -> Descriptor:
    number = 0
    while True:
        try:
            number = bpf.btf_get_next_id(number)
            btf_fd = bpf.btf_get_fd_by_id(number)
        except KernelError as error:
            if error.errno != errno.ENOENT:
                raise
            if "NEXT_ID" in error.call:
                reason = "the module is not loaded any more"
                raise NotSupportedError(f"BTF of module {module!r}", reason) from None
            continue  # freed since it was listed
        if _name(btf_fd) == module:
            return btf_fd
        btf_fd.close()


def _name(btf: Descriptor) -> str:
    """The name of a kernel BTF; "" for one that a program brought."""
    name = Buffer(_NAME_SIZE)
    info = bytearray(BPF_BTF_INFO.pack(name=name.address, name_len=_NAME_SIZE))
    try:
        bpf.obj_get_info_by_fd(btf.fileno(), info)
    except BaseException:
        btf.close()
        raise
    is_kernel = BPF_BTF_INFO.unpack(info)["kernel_btf"]
    return name.data.partition(b"\0")[0].decode() if is_kernel else ""
