"""The BTF that a map in the kernel was created with."""

from __future__ import annotations

from purebpf.abi.layouts import BPF_BTF_INFO
from purebpf.btf.types.parse import Btf
from purebpf.syscall import bpf
from purebpf.syscall.command import address_of

__all__ = ["read_btf"]


def read_btf(btf_id: int) -> Btf:
    """The BTF that the kernel knows as `btf_id` (Linux 4.18, commit 78958fca7ead, CAP_SYS_ADMIN).

    Raises:
        KernelError: ENOENT, it is gone; EPERM, it may not be opened.
    """
    with bpf.btf_get_fd_by_id(btf_id) as descriptor:
        data = bytearray()
        for _ in range(2):  # the first time says how long it is
            request = BPF_BTF_INFO.pack(btf=address_of(data), btf_size=len(data))
            bpf.obj_get_info_by_fd(descriptor.fileno(), request)
            if not data:
                data = bytearray(int(BPF_BTF_INFO.unpack(request)["btf_size"]))
    return Btf(bytes(data), source=f"BTF {btf_id}")
