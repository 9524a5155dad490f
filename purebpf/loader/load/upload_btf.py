"""Third stage of a load: uploads the object's BTF (BPF_BTF_LOAD) for its maps and programs."""

from __future__ import annotations

from purebpf.btf.types.parse import Btf
from purebpf.errors import KernelError
from purebpf.loader.load.upload_result import UNRELATED, Upload
from purebpf.syscall import bpf

__all__ = ["upload_btf"]


def upload_btf(btf: Btf | None) -> Upload:
    """Give the kernel an object's BTF (BPF_BTF_LOAD), simplified when it must be.

    Linux 4.18 (commit f56a653c1fd1).

    BTF is a description: an object with refused BTF still loads, as it does with libbpf. One
    without BTF has nothing to upload.

    Raises:
        KernelError: the call failed for a reason other than the BTF: ENOMEM, EMFILE.
    """
    if btf is None:
        return Upload(None, functions=False, problem="")
    try:
        return Upload(bpf.btf_load(btf.data), functions=True, problem="")
    except KernelError as error:
        if error.errno in UNRELATED:
            raise
        from purebpf.loader.load.btf_fallback import upload_simplified

        return upload_simplified(btf, error)
