"""Fallbacks for BTF that the kernel refused."""

from __future__ import annotations

from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf
from purebpf.errors import KernelError
from purebpf.loader.features import features
from purebpf.loader.load.btf_simplify import has_question_marks, kinds_of, simplify
from purebpf.loader.load.upload_result import UNRELATED, Upload
from purebpf.syscall import bpf
from purebpf.syscall.command import Log

__all__ = ["upload_simplified"]

_LOG_SIZE = 1 << 16


def upload_simplified(btf: Btf, refusal: KernelError) -> Upload:
    """Give the kernel `btf` without the kinds of types that it turns out not to know.

    Raises:
        KernelError: the call failed for a reason other than the BTF: ENOMEM, EMFILE.
    """
    unknown = {kind for kind in kinds_of(btf) if not features.have_btf_kind(kind)}
    global_functions = bool(features.have_global_functions())
    question_marks = bool(features.have_question_marks())
    if not unknown and global_functions and (question_marks or not has_question_marks(btf)):
        return Upload(None, functions=False, problem=f"{refusal}{_reason(btf.data)}")
    data = simplify(btf, unknown, global_functions=global_functions, question_marks=question_marks)
    rest = "question marks" if global_functions else "global functions"
    without = ", ".join(sorted(kind.name for kind in unknown)) or rest
    try:
        descriptor = bpf.btf_load(data)
    except KernelError as error:
        if error.errno in UNRELATED:
            raise
        return Upload(None, functions=False, problem=f"{error}{_reason(data)}")
    functions = not unknown & {Kind.FUNC, Kind.FUNC_PROTO}
    return Upload(descriptor, functions, f"this kernel does not support {without} in BTF")


def _reason(data: bytes) -> str:
    """The last line of the kernel's log about refused BTF."""
    log = Log(_LOG_SIZE)
    try:
        bpf.btf_load(data, log=log).close()
    except KernelError:
        lines = log.text().splitlines()
        return f": {lines[-1]}" if lines else ""
    return ""
