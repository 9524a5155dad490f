"""Third stage of a load: the object's BTF (BPF_BTF_LOAD), which maps and programs refer to."""

from __future__ import annotations

from purebpf.btf.types.parse import Btf
from purebpf.errors import KernelError
from purebpf.kernel.load.btf_upload import UNRELATED, Upload
from purebpf.spec import ObjectSpec
from purebpf.syscall import bpf

__all__ = ["upload", "upload_btf"]

_CONTEXT_TAG = b"\0arg:ctx\0"


def upload_btf(spec: ObjectSpec) -> Upload:
    """What the kernel takes of an object's types; an object without BTF has nothing to upload.

    Raises:
        KernelError: as `upload`.
    """
    if spec.btf is None:
        return Upload(None, functions=False, problem="")
    if _CONTEXT_TAG in spec.btf.data:
        from purebpf.kernel.load.arg_ctx import fit_contexts

        btf, copies = fit_contexts(spec, spec.btf)
        return upload(btf)._replace(copies=copies)
    return upload(spec.btf)


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
        from purebpf.kernel.load.btf_fallback import upload_simplified

        return upload_simplified(btf, error)
