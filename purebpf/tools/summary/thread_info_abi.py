"""The member of a task that has the ABI of its call, for programs that are not typed by BTF."""

from __future__ import annotations

from purebpf.btf.types.kinds import Kind, Member
from purebpf.btf.types.parse import Btf
from purebpf.errors import NotSupportedError
from purebpf.loader.types.kernel_btf import kernel_btf

__all__ = ["UNKNOWN", "word_offset"]

UNKNOWN = -1
_WORDS = ("status", "flags")
"""Of struct thread_info: x86 has both and the mark in the first; arm64 has only the second."""


def word_offset(btf: Btf | None = None) -> int:
    """The offset of that word in struct task_struct, in bytes; UNKNOWN on kernels without BTF.

    Args:
        btf: the kernel's types; by default the running kernel's.
    """
    if btf is None:
        try:
            btf = kernel_btf()
        except NotSupportedError:
            return UNKNOWN
    for task in btf.find("task_struct", Kind.STRUCT):
        if (info := _member(btf, task, "thread_info")) is None:
            continue
        for name in _WORDS:
            if (word := _member(btf, btf.resolve(info.type_id), name)) is not None:
                return (info.bit_offset + word.bit_offset) // 8
    return UNKNOWN


def _member(btf: Btf, struct: int, name: str) -> Member | None:
    thread_info = btf.type(struct)
    if thread_info.kind is not Kind.STRUCT:
        return None
    return next((member for member in thread_info.members if member.name == name), None)
