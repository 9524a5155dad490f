"""The facts about this kernel that programs at the scheduler's tracepoints need."""

from __future__ import annotations

from typing import Any

from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.errors import NotSupportedError
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.spec import ObjectSpec

__all__ = ["adapt", "has_prev_state", "has_task_storage", "without_task_storage"]

_TASKS = 65536
"""Tasks that can have a state on kernels without task storage (Linux 5.11: commit 4cf1bc1f1045)."""

_PREV_STATE_PARAMS = 5  # of the tracepoint sched_switch, with the context before them


def adapt(spec: ObjectSpec) -> ObjectSpec:
    """A spec with the constants of bpf_src/include/ set for this kernel.

    Raises:
        NotSupportedError: it asks for `has_prev_state`, and the kernel has no BTF.
    """
    if "has_prev_state" in spec.variables:
        spec = spec.set(has_prev_state=has_prev_state())
    if "task_pt_regs" in spec.variables:
        spec = spec.set(task_pt_regs=_has_helper(bpf_func_id.BPF_FUNC_task_pt_regs))
    if "task_storage" not in spec.variables or has_task_storage():
        return spec
    return without_task_storage(spec)


def has_task_storage() -> bool:
    """Test if programs can store the state of a task with the task."""
    return _has_helper(bpf_func_id.BPF_FUNC_task_storage_get)


def _has_helper(helper: int) -> bool:
    """Test if programs at tracepoints may call a helper."""
    from purebpf.loader.features import features

    raw = bpf_prog_type.BPF_PROG_TYPE_RAW_TRACEPOINT  # like tp_btf, but needs no function to ask
    return bool(features.have_helper(raw, helper))


def has_prev_state() -> bool:
    """Test if sched_switch passes the state of the task that leaves (Linux 5.18).

    Commit fa2c3254d7cf, "sched/tracing: Don't re-read p->state when emitting sched_switch event".

    Raises:
        NotSupportedError: the kernel has no BTF, or none of this tracepoint.
    """
    btf = kernel_btf()
    type_ids = btf.find("btf_trace_sched_switch")
    if not type_ids:
        raise NotSupportedError(
            "tracing switches between tasks",
            "the kernel's BTF does not have btf_trace_sched_switch",
        )
    pointer: Any = btf.type(btf.resolve(type_ids[0]))
    prototype: Any = btf.type(pointer.type_id)
    return len(prototype.params) >= _PREV_STATE_PARAMS


def without_task_storage(spec: ObjectSpec) -> ObjectSpec:
    """Use a hash in its stead. References to the storage are dead code then, but need a map."""
    unused = spec.maps["tasks"]._replace(
        type=bpf_map_type.BPF_MAP_TYPE_HASH, flags=0, max_entries=1
    )
    changed = spec._replace(maps={**spec.maps, "tasks": unused})
    return changed.set(task_storage=False).resize(tasks_by_address=_TASKS)
