"""The access of a filter program to the words of a sample, on a given kernel.

From Linux 6.3 the kernel prepares a sample before the program runs (perf_prepare_sample() is called
by bpf_overflow_handler(): commit 0eed28220598, "perf/core: Call perf_prepare_sample() before
running BPF"), and a program can reach it by a cast of its context (the kernel function
bpf_cast_to_kern_ctx, Linux 6.2: commit fd264ca02094): every field is there. On an older kernel
there are the registers and two numbers in the context (struct bpf_perf_event_data), and the answers
of helpers about the running thread.
"""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.abi.helpers import bpf_func_id
from purebpf.btf.types.kinds import Kind, Struct, Union
from purebpf.btf.types.parse import Btf
from purebpf.tuples import NamedTuple

__all__ = ["Cast", "Helper", "SampleAccess", "Word", "from_registers", "from_sample"]

_CAST = "bpf_cast_to_kern_ctx"
_KERNEL_CONTEXT = "bpf_perf_event_data_kern"
_CONTEXT = "bpf_perf_event_data"
_INSTRUCTION_POINTERS = {"x86_64": "ip", "aarch64": "pc", "riscv64": "pc"}


class Cast(NamedTuple):
    """The kernel function that gives the kernel's context, and where its `data` is, in bytes."""

    type_id: int
    data_offset: int


class Word(NamedTuple):
    """`size` bytes at `offset` of the prepared sample, or of the program's own context."""

    offset: int
    size: int


class Helper(NamedTuple):
    """`size` bytes at `offset` of a helper function's result."""

    number: int
    offset: int
    size: int


class SampleAccess(NamedTuple):
    """The place of each word of `purebpf.filter.fields`; a missing word is not available.

    `cast` is None when the words are in the program's own context; `ancestors` says that a helper
    tells the cgroups above a thread's own, as `cgroup under` wants to know.
    """

    cast: Cast | None
    words: Mapping[str, Word | Helper]
    ancestors: bool = True


def from_sample(btf: Btf) -> SampleAccess | None:
    """The words of a prepared sample, by the types of the kernel; None if it does not have them.

    Raises:
        FormatError: the types are malformed.
    """
    functions = btf.find(_CAST, Kind.FUNC)
    contexts = btf.find(_KERNEL_CONTEXT, Kind.STRUCT)
    samples = btf.find("perf_sample_data", Kind.STRUCT)
    if not (functions and contexts and samples):
        return None
    data = _member(btf, contexts[0], "data")
    if data is None or _member(btf, samples[0], "dyn_size") is None:
        return None  # it came with preparing samples before the program runs; 6.2 has the cast only
    words = {path: _member(btf, samples[0], path) for path in _PATHS}
    available: dict[str, Word | Helper] = {path: word for path, word in words.items() if word}
    return SampleAccess(Cast(functions[0], data.offset), available)


_PATHS = (
    *("ip", "tid_entry.tid", "tid_entry.pid", "time", "addr", "id", "cpu_entry.cpu", "period"),
    *("weight.full", "data_src.val", "txn", "phys_addr", "cgroup"),
    *("data_page_size", "code_page_size"),
)


def from_registers(btf: Btf | None, machine: str, *, own_pids: bool) -> SampleAccess:
    """The words of the context and of helpers, on any kernel with the program type (Linux 4.9).

    `btf` is the kernel's, None when it shows none: then only helpers answer. `machine` is
    uname(2)'s. `own_pids` says that this process counts processes as the kernel does, in the
    initial pid namespace; elsewhere the helper's numbers differ from the samples'.
    """
    words: dict[str, Word | Helper] = {
        "cpu_entry.cpu": Helper(bpf_func_id.BPF_FUNC_get_smp_processor_id, 0, 4),
        "cgroup": Helper(bpf_func_id.BPF_FUNC_get_current_cgroup_id, 0, 8),
    }
    if own_pids:
        words["tid_entry.tid"] = Helper(bpf_func_id.BPF_FUNC_get_current_pid_tgid, 0, 4)
        words["tid_entry.pid"] = Helper(bpf_func_id.BPF_FUNC_get_current_pid_tgid, 4, 4)
    contexts = btf.find(_CONTEXT, Kind.STRUCT) if btf is not None else ()
    if btf is not None and contexts:
        paths = {"period": "sample_period", "addr": "addr"}
        if register := _INSTRUCTION_POINTERS.get(machine):
            paths["ip"] = f"regs.{register}"
        for name, path in paths.items():
            if word := _member(btf, contexts[0], path):
                words[name] = word
    return SampleAccess(None, words)


def _member(btf: Btf, struct_id: int, path: str) -> Word | None:
    """Return the place of a member of a struct; members of anonymous members count as the
    struct's own.
    """
    name, _, rest = path.partition(".")
    record = btf.type(btf.resolve(struct_id))
    if not isinstance(record, Struct | Union):
        return None
    for member in record.members:
        inner: Word | None
        if member.name == name:
            offset = member.bit_offset // 8
            if not rest:
                return Word(offset, btf.sizeof(member.type_id))
            inner = _member(btf, member.type_id, rest)
        elif member.name == "":
            offset = member.bit_offset // 8
            inner = _member(btf, member.type_id, path)
        else:
            continue
        if inner is not None:
            return Word(offset + inner.offset, inner.size)
    return None
