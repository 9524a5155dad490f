"""Parameters tagged `arg:ctx`, for kernels that do not know the tag (before Linux 6.8).

Commit 94e1c70a3452.

Such a kernel takes a parameter of a global function for the program's context when its type is a
pointer to the struct of that name. Programs of different types share functions, so each type gets
copies of those it may call, and its function info names the copies. As libbpf does it
(bpf_program_fixup_func_info).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from purebpf.abi.bpf import bpf_prog_type
from purebpf.btf.types.kinds import (
    DeclTag,
    Func,
    FuncProto,
    Int,
    Kind,
    Linkage,
    Ptr,
    Struct,
    Typedef,
)
from purebpf.btf.types.parse import Btf
from purebpf.elf.btf_editor import BtfEditor
from purebpf.loader.features import features
from purebpf.spec import ObjectSpec
from purebpf.tuples import NamedTuple

__all__ = ["Copies", "fit_contexts", "with_contexts"]

_TAG = "arg:ctx"
_P = bpf_prog_type
_REGISTERS = "bpf_user_pt_regs_t"
_CONTEXTS: dict[int, str] = {
    _P.BPF_PROG_TYPE_CGROUP_DEVICE: "bpf_cgroup_dev_ctx",
    _P.BPF_PROG_TYPE_CGROUP_SKB: "__sk_buff",
    _P.BPF_PROG_TYPE_CGROUP_SOCK: "bpf_sock",
    _P.BPF_PROG_TYPE_CGROUP_SOCK_ADDR: "bpf_sock_addr",
    _P.BPF_PROG_TYPE_CGROUP_SOCKOPT: "bpf_sockopt",
    _P.BPF_PROG_TYPE_CGROUP_SYSCTL: "bpf_sysctl",
    _P.BPF_PROG_TYPE_FLOW_DISSECTOR: "__sk_buff",
    _P.BPF_PROG_TYPE_KPROBE: _REGISTERS,
    _P.BPF_PROG_TYPE_LWT_IN: "__sk_buff",
    _P.BPF_PROG_TYPE_LWT_OUT: "__sk_buff",
    _P.BPF_PROG_TYPE_LWT_SEG6LOCAL: "__sk_buff",
    _P.BPF_PROG_TYPE_LWT_XMIT: "__sk_buff",
    _P.BPF_PROG_TYPE_NETFILTER: "bpf_nf_ctx",
    _P.BPF_PROG_TYPE_PERF_EVENT: "bpf_perf_event_data",
    _P.BPF_PROG_TYPE_RAW_TRACEPOINT: "bpf_raw_tracepoint_args",
    _P.BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE: "bpf_raw_tracepoint_args",
    _P.BPF_PROG_TYPE_SCHED_ACT: "__sk_buff",
    _P.BPF_PROG_TYPE_SCHED_CLS: "__sk_buff",
    _P.BPF_PROG_TYPE_SK_LOOKUP: "bpf_sk_lookup",
    _P.BPF_PROG_TYPE_SK_MSG: "sk_msg_md",
    _P.BPF_PROG_TYPE_SK_REUSEPORT: "sk_reuseport_md",
    _P.BPF_PROG_TYPE_SK_SKB: "__sk_buff",
    _P.BPF_PROG_TYPE_SOCK_OPS: "bpf_sock_ops",
    _P.BPF_PROG_TYPE_SOCKET_FILTER: "__sk_buff",
    _P.BPF_PROG_TYPE_XDP: "xdp_md",
}
"""What the context of each type of program is called; other types have none with a name."""

_ALSO: dict[int, frozenset[str]] = {
    _P.BPF_PROG_TYPE_KPROBE: frozenset({"pt_regs"}),
    _P.BPF_PROG_TYPE_PERF_EVENT: frozenset({"pt_regs", "user_pt_regs"}),
}
"""Structs that a program may call its context besides."""

_RAW = (_P.BPF_PROG_TYPE_RAW_TRACEPOINT, _P.BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE)

Copies = Mapping[int, Mapping[int, int]]
"""By enum bpf_prog_type: the id of a function, and that of its copy for programs of this type."""


class _Tagged(NamedTuple):
    function: int
    parameter: int
    target: int


def fit_contexts(spec: ObjectSpec, btf: Btf) -> tuple[Btf, Copies]:
    """The object's BTF for this kernel: with copies of functions if it does not know the tag."""
    return (btf, {}) if features.have_context_tags() else with_contexts(spec, btf)


def with_contexts(spec: ObjectSpec, btf: Btf) -> tuple[Btf, Copies]:
    """`btf` of the object with copies of functions at its end, and which those are."""
    tagged = list(_find_tagged(btf))
    editor = BtfEditor(btf)
    copies: dict[int, dict[int, int]] = {}
    for kind in sorted({program.type for program in spec.programs.values()} & _CONTEXTS.keys()):
        wanted: dict[int, list[int]] = {}
        for tag in tagged:
            if _is_other(btf, tag.target, kind):
                wanted.setdefault(tag.function, []).append(tag.parameter)
        if not wanted:
            continue
        context = editor.add_pointer_to_struct(_CONTEXTS[kind])
        copies[kind] = {}
        for function, parameters in wanted.items():
            copy = editor.copy_function(function, dict.fromkeys(parameters, context))
            copies[kind][function] = copy
            for parameter in parameters:
                editor.add_tag(_TAG, copy, parameter)
    return editor.finish(), copies


def _find_tagged(btf: Btf) -> Iterator[_Tagged]:
    """The tagged parameters of global functions."""
    for type_id in range(1, len(btf)):
        if btf.kind(type_id) is not Kind.DECL_TAG:
            continue
        tag = btf.type(type_id)
        assert isinstance(tag, DeclTag)
        function = btf.type(tag.type_id)
        if tag.name != _TAG or not isinstance(function, Func):
            continue
        prototype = btf.type(function.type_id)
        if function.linkage is not Linkage.GLOBAL or not isinstance(prototype, FuncProto):
            continue
        if 0 <= tag.component < len(prototype.params):
            target = prototype.params[tag.component].type_id
            yield _Tagged(tag.type_id, tag.component, target)


def _is_other(btf: Btf, type_id: int, kind: int) -> bool:
    """Return True if a parameter's type means the context, but differs from the kernel's."""
    pointer = btf.type(btf.resolve(type_id))
    if not isinstance(pointer, Ptr):
        return False
    alias = btf.type(pointer.type_id) if pointer.type_id else None
    if isinstance(alias, Typedef) and alias.name == _REGISTERS:
        return False
    number = btf.resolve(pointer.type_id) if pointer.type_id else 0
    if not number:
        return True
    target = btf.type(number)
    if isinstance(target, Struct):
        return target.name in _ALSO.get(kind, ())
    return kind in _RAW and isinstance(target, Int) and target.size == 8
