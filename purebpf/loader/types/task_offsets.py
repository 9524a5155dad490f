"""The offsets in this kernel's struct task_struct that tell programs apart."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.member_offsets import member_offsets
from purebpf.btf.types.parse import Btf
from purebpf.loader.types.kept_offsets import keep_offsets, kept_offsets
from purebpf.loader.types.kernel_btf import kernel_btf, read_kernel_btf

__all__ = [
    "mapping_offsets",
    "stack_offsets",
    "task_offsets",
    "thread_pointer_offset",
    "uprobe_offsets",
]

_FIELDS = ("start_time", "self_exec_id", "group_leader")
_OF_PROBED = ("return_instances", "active_uprobe", "vaddr", "xol_vaddr")
_OF_RETURN = ("stack", "orig_ret_vaddr", "next")
_POINTERS = {"x86_64": "fsbase", "aarch64": "uw"}
"""Of struct thread_struct, by machine."""
_OF_AREA = ("vm_start", "vm_end", "vm_pgoff", "vm_flags", "vm_file")
_OF_INODE = ("i_ino", "i_sb", "i_size")
_TIMES = (("i_mtime_sec", "i_mtime_nsec"), ("__i_mtime",), ("i_mtime",))
"""Since Linux 6.11, 6.6, and before: commits 3aa63a569c64 and 12cd44023651."""
_BYTE = 8


def task_offsets() -> dict[str, int]:
    """The bytes before each field of bpf_src/include/user_stacks.h, or none if one is not there.

    Raises:
        NotSupportedError: a kernel without BTF.
        FormatError: it is malformed.
    """
    return _offsets("task_struct", _FIELDS)


def stack_offsets() -> dict[str, int]:
    """The bytes before task_struct.mm and mm_struct.end_code, or none if one is not there.

    The second is in a struct without a name (Linux 4.20, commit c1a2f7f0c064): it takes an index of
    all types, 40 ms of CPU time, once for a kernel.

    Raises:
        NotSupportedError: a kernel without BTF.
        FormatError: it is malformed.
    """
    mm = _offsets("task_struct", ("mm",))
    return mm and mm | _offsets("mm_struct", ("end_code",))


def uprobe_offsets() -> dict[str, int]:
    """The bytes before each field of bpf_src/include/walk_uprobes.h, or none if one is not there.

    Raises:
        NotSupportedError: a kernel without BTF.
        FormatError: it is malformed.
    """
    task = _offsets("task_struct", ("utask",))  # CONFIG_UPROBES
    probed = _offsets("uprobe_task", _OF_PROBED) if task else {}
    returns = _offsets("return_instance", _OF_RETURN) if probed else {}
    return returns and returns | probed | task


def mapping_offsets() -> dict[str, int]:
    """The bytes before each field of bpf_src/include/live_mappings.h, or none if one is not there.

    Raises:
        NotSupportedError: a kernel without BTF.
        FormatError: it is malformed.
    """
    parts = [
        _offsets("vm_area_struct", _OF_AREA),
        _offsets("file", ("f_inode",)),
        _offsets("inode", _OF_INODE),
        _offsets("super_block", ("s_dev",)),
        _mtime_offsets(),
    ]
    return {name: at for part in parts for name, at in part.items()} if all(parts) else {}


def _mtime_offsets() -> dict[str, int]:
    """The bytes before the seconds and the nanoseconds of a file's modification time."""
    for names in _TIMES:
        times = _offsets("inode", names)
        if times:
            seconds = times[names[0]]
            rest = times[names[1]] if len(names) > 1 else seconds + _BYTE  # struct timespec64
            return {"mtime_s": seconds, "mtime_ns": rest}
    return {}


def thread_pointer_offset() -> int:
    """Return the offset of the pointer to a thread's own storage; 0: it is not there.

    On x86_64 thread.fsbase; on arm64 thread.uw, which begins with tp_value (Linux 4.17, commit
    65896545b69f): TPIDR_EL0 from when the thread last left a CPU, or started.

    Raises:
        NotSupportedError: a kernel without BTF.
        FormatError: it is malformed.
    """
    thread = _offsets("task_struct", ("thread",))
    base = _offsets("thread_struct", (_POINTERS.get(os.uname().machine, ""),))
    return thread["thread"] + sum(base.values()) if thread and base else 0


def _offsets(name: str, members: Collection[str]) -> dict[str, int]:
    """The bytes before members of a struct, or none if one is not there.

    They may be in a struct without a name (CONFIG_RANDSTRUCT), which takes an index of all types.
    """
    if offsets := kept_offsets(name, members):
        return offsets
    offsets = member_offsets(read_kernel_btf(), name, members)
    if not offsets:
        btf = kernel_btf()
        for type_id in btf.find(name, Kind.STRUCT):
            _look(btf, type_id, members, offsets)
    if len(offsets) != len(members):
        return {}
    keep_offsets(name, offsets)
    return offsets


def _look(
    btf: Btf, type_id: int, names: Collection[str], offsets: dict[str, int], base: int = 0
) -> None:
    struct: Any = btf.type(type_id)
    for member in struct.members:
        at = base + member.bit_offset // _BYTE
        if member.name in names:
            offsets[member.name] = at
        elif not member.name:
            inner = btf.resolve(member.type_id)
            if btf.kind(inner) in (Kind.STRUCT, Kind.UNION):
                _look(btf, inner, names, offsets, at)
