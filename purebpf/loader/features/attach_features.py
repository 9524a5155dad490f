"""The kinds of attachment that work here, detected by attaching to targets that do not exist.

A kernel that has a kind of link looks for its target and says that there is none (EBADF, ENODEV,
ENOENT); another does not know the kind (EINVAL, EOPNOTSUPP). Tracing programs are the exception:
those are loaded for a function that does nothing, or for a hook that they let pass.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from purebpf.abi.bpf import bpf_attach_type, bpf_prog_type
from purebpf.btf.types.kinds import Kind
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.features import probes
from purebpf.loader.features.feature import Feature, answer_refusal, remember
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.syscall import bpf, pmu, tracefs
from purebpf.syscall.command import Field
from purebpf.tuples import NamedTuple

__all__ = ["KINDS", "have_attach"]

_NOTHING = 0xFFFFFFFF
_NO_NAME = b"purebpf_is_no_function\0"


class _Link(NamedTuple):
    """A link to nothing, and the errno of a kernel that supports such links."""

    program: bpf_prog_type
    attach: bpf_attach_type
    known: tuple[int, ...]
    fields: dict[str, Field]


class _Function(NamedTuple):
    """A program for a type or function of the kernel's BTF."""

    program: bpf_prog_type
    attach: bpf_attach_type
    target: str
    kind: Kind


_P, _A = bpf_prog_type, bpf_attach_type
_FD = {"target_fd": _NOTHING}


def _cgroup(program: bpf_prog_type, attach: bpf_attach_type) -> _Link:
    return _Link(program, attach, (errno.EBADF,), {**_FD})


_LINKS = {
    "xdp": _Link(  # into hardware that the loopback interface has not
        _P.BPF_PROG_TYPE_XDP,
        _A.BPF_XDP,
        (errno.EOPNOTSUPP,),
        {"target_ifindex": 1, "flags": 1 << 3},
    ),
    "netfilter": _Link(
        _P.BPF_PROG_TYPE_NETFILTER,
        _A.BPF_NETFILTER,
        (errno.EAFNOSUPPORT, errno.EPFNOSUPPORT),
        {"netfilter_pf": 255},
    ),
    "cgroup_skb": _cgroup(_P.BPF_PROG_TYPE_CGROUP_SKB, _A.BPF_CGROUP_INET_INGRESS),
    "cgroup/connect4": _cgroup(_P.BPF_PROG_TYPE_CGROUP_SOCK_ADDR, _A.BPF_CGROUP_INET4_CONNECT),
    "sk_lookup": _Link(_P.BPF_PROG_TYPE_SK_LOOKUP, _A.BPF_SK_LOOKUP, (errno.EBADF,), {**_FD}),
    "flow_dissector": _Link(
        _P.BPF_PROG_TYPE_FLOW_DISSECTOR, _A.BPF_FLOW_DISSECTOR, (errno.EBADF,), {**_FD}
    ),
    "kprobe.multi": _Link(
        _P.BPF_PROG_TYPE_KPROBE,
        _A.BPF_TRACE_KPROBE_MULTI,
        (errno.EFAULT,),  # of the array of addresses; of an address that is none, EINVAL
        {"kprobe_multi_cnt": 1, "kprobe_multi_addrs": 8},
    ),
    "kprobe.session": _Link(
        _P.BPF_PROG_TYPE_KPROBE,
        _A.BPF_TRACE_KPROBE_SESSION,
        (errno.EFAULT,),
        {"kprobe_multi_cnt": 1, "kprobe_multi_addrs": 8},
    ),
    "uprobe.multi": _Link(
        _P.BPF_PROG_TYPE_KPROBE,
        _A.BPF_TRACE_UPROBE_MULTI,
        (errno.EBADF,),
        {"uprobe_multi_path": b"/\0", "uprobe_multi_offsets": bytes(8), "uprobe_multi_cnt": 1},
    ),
}
_TRACING, _LSM = _P.BPF_PROG_TYPE_TRACING, _P.BPF_PROG_TYPE_LSM
_FUNCTIONS = {
    "fentry": _Function(_TRACING, _A.BPF_TRACE_FENTRY, "bpf_fentry_test1", Kind.FUNC),
    "fexit": _Function(_TRACING, _A.BPF_TRACE_FEXIT, "bpf_fentry_test1", Kind.FUNC),
    "fmod_ret": _Function(_TRACING, _A.BPF_MODIFY_RETURN, "bpf_modify_return_test", Kind.FUNC),
    "lsm": _Function(_LSM, _A.BPF_LSM_MAC, "bpf_lsm_path_chroot", Kind.FUNC),
    "tp_btf": _Function(_TRACING, _A.BPF_TRACE_RAW_TP, "btf_trace_sys_enter", Kind.TYPEDEF),
    "iter": _Function(_TRACING, _A.BPF_TRACE_ITER, "bpf_iter_bpf_map", Kind.FUNC),
}


@remember
def have_attach(kind: str) -> Feature:
    """Test if programs can be attached in a way: "kprobe", "fentry", "tcx"; see `KINDS`.

    Raises:
        KeyError: there is no such kind; lists those that there are.
    """
    if kind not in KINDS:
        raise KeyError(f"unknown attach kind {kind!r}; known: {', '.join(KINDS)}")
    name = f"attaching by {kind}"
    try:
        if kind in _LINKS:
            return _probe_link(name, _LINKS[kind])
        if kind in _FUNCTIONS:
            return _probe_attach(name, _FUNCTIONS[kind])
        return _OTHERS[kind](name)
    except KernelError as error:
        return answer_refusal(name, error)
    except NotSupportedError as error:
        return Feature(name, supported=False, reason=str(error))


def _probe_link(name: str, link: _Link) -> Feature:
    with probes.load_program(link.program, attach_type=int(link.attach)) as program:
        try:
            bpf.link_create(link.attach, prog_fd=program.fileno(), **link.fields).close()
        except KernelError as error:
            if error.errno in link.known:
                return Feature(name, supported=True, reason="the kernel looked for the target")
            return answer_refusal(name, error)
    return Feature(name, supported=True, reason="the kernel accepted it")


def _probe_attach(name: str, function: _Function) -> Feature:
    """Attach for real, for the moment that it takes."""
    type_ids = kernel_btf().find(function.target, function.kind)
    if not type_ids:
        return Feature(
            name,
            supported=False,
            reason=f"this kernel does not have {function.target}, the function to try it on",
        )
    with bpf.prog_load(
        function.program,
        probes.RETURN_0,
        "GPL",
        expected_attach_type=int(function.attach),
        attach_btf_id=type_ids[0],
    ) as program:
        if function.attach == _A.BPF_TRACE_ITER:
            bpf.link_create(function.attach, prog_fd=program.fileno()).close()
        else:
            bpf.raw_tracepoint_open(program.fileno()).close()
    return Feature(name, supported=True, reason="the kernel attached one")


def _raw_tracepoint(name: str) -> Feature:
    with probes.load_program(_P.BPF_PROG_TYPE_RAW_TRACEPOINT) as program:
        try:
            bpf.raw_tracepoint_open(program.fileno(), _NO_NAME.decode().rstrip("\0")).close()
        except KernelError as error:
            if error.errno == errno.ENOENT:
                return Feature(name, supported=True, reason="the kernel looked for the tracepoint")
            return answer_refusal(name, error)
    return Feature(name, supported=True, reason="the kernel accepted it")


def _perf_event(name: str) -> Feature:
    """By a bpf_link, or by ioctl(2), as every kernel that has such programs.

    The link: Linux 5.15 (commit b89fbfbb854c).
    """
    probes.load_program(_P.BPF_PROG_TYPE_PERF_EVENT).close()
    return Feature(name, supported=True, reason="the kernel has programs for them")


def _tracepoint(name: str) -> Feature:
    number = tracefs.tracepoint_id("sched", "sched_switch")
    return Feature(name, supported=True, reason=f"sched:sched_switch is tracepoint {number}")


def _probe_event(kind: str) -> Callable[[str], Feature]:
    """Test for kprobes and uprobes: a separate PMU, or a file in tracefs.

    The PMUs came with Linux 4.17: commit e12f03d7031a, "perf/core: Implement the 'perf_kprobe'
    PMU", and commit 33ea4b24277b, "perf/core: Implement the 'perf_uprobe' PMU".
    """

    def ask(name: str) -> Feature:
        number = pmu.attribute(kind, "type")
        if number is not None:
            return Feature(name, supported=True, reason=f"the kernel has PMU {kind}, type {number}")
        tracefs.read(f"{kind}_events")
        return Feature(name, supported=True, reason=f"tracefs has {kind}_events")

    return ask


_OTHERS: dict[str, Callable[[str], Feature]] = {
    "perf_event": _perf_event,
    "tracepoint": _tracepoint,
    "raw_tracepoint": _raw_tracepoint,
    "kprobe": _probe_event("kprobe"),
    "uprobe": _probe_event("uprobe"),
}
KINDS = tuple(sorted({**_LINKS, **_FUNCTIONS, **_OTHERS}))
"""What `have_attach` knows."""
